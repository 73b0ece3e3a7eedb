// Package repair takes a lock away from holders that are dead, a permit back whose holder is dead,
// and a dead waiter out of the queue of a fair lock: what the commands redlatch unlock and evict,
// and the page, have in common. It asks and prints nothing.
//
//	Unlock.Run: look ─▶ does each holder renew its lease? ─▶ is it stated to be dead? ─▶ look once more ─▶ take
//	Evict.Run:  look ─▶ look again ─▶ evict
//
// What is not done, although nothing has failed, is a [Refusal].
package repair
