// Package repair takes a lock away from a holder that is dead, and a dead waiter out of the queue
// of a fair lock: what the commands redlatch unlock and evict, and the page, have in common. It
// asks and prints nothing.
//
//	Unlock.Run: look ─▶ is the lease renewed? ─▶ which holders are stated to be dead? ─▶ look once more ─▶ take
//	Evict.Run:  look ─▶ look again ─▶ evict
//
// What is not done, although nothing has failed, is a [Refusal].
package repair
