// Package history records what several processes did with locks, and judges it.
//
// # What is written
//
// Each process appends records to a file of its own, one write(2) for each, so that what it
// did before it was killed is there. Times are of CLOCK_MONOTONIC, which all processes of a
// machine share. The life of a hold:
//
//	Call ──▶ Return ──▶ Grant ──▶ Valid, again and again ──▶ Give ──▶ Return
//	                      │                              ├─▶ Over
//	                      └── Mark, Audit                └─▶ nothing more: killed
//
// # When a hold is valid
//
// From the moment after its grant until the moment before it was given up, or until its own
// deadline. A sample is a time, then Err() == nil, then Remaining(): the hold was valid at
// that time, and unless it ends early it is valid for what Remaining returned from that
// time on. Both are lower bounds. A process that stands still, or was killed later, cannot
// have seen its hold end, so its hold counts as valid until the deadline of its last
// sample, or until it was killed. When the end was seen before the deadline, the hold
// counts as valid until the last sample alone. So an interval is never longer than the
// hold's own view of itself, however busy the machine, and two that overlap are two that
// believed it at once.
//
// # What is judged
//
//   - Overlaps: of two owners' intervals on one key. None may be while the server
//     remembers; where it was made to forget, none may last longer than a renewal
//     period after that. Holds of one owner are one holder: nested and handed over.
//   - Marks: while it is inside, a holder appends to a stream on a server that no
//     fault touches, and then looks whether it is still valid. The marks that were
//     followed by such a look need no clock: between the first and the last of one
//     owner there may be none of another. Marks without it prove nothing, since the
//     command may have arrived late.
//   - Tokens: a hold whose call began after another hold was granted has a higher token,
//     unless the server was made to forget in between.
//   - Audits: what the server has, asked past all faults, after a sample. The hold
//     must end at least its loss margin before the key can expire, and the owner's
//     count must be how often it is inside. After an unlock that succeeded the owner
//     must be gone.
//   - Early ends: a hold that is lost before its deadline, while the server
//     remembers.
//   - Re-entries: the proof of a hold that the server was made to forget must be
//     refused.
//   - Bounds: every call returns in its time, the time its process stood still not
//     counted: it was frozen, or a goroutine of its own that does nothing else was woken
//     half a second late.
//   - Idle locks: from the reply to an unlock until a waiter has the lock, the time
//     around faults not counted.
//   - A second opinion: porcupine on windows of each key's history, as a mutex.
//
// Of semaphores, while the server remembers:
//
//   - Permits: at no time are more out than were set. A hold has its permits as late and
//     as shortly as its calls and samples allow, so that those that fit make an order in
//     which a semaphore could have granted them, and those that do not are a proof. No
//     model checker says more, since an attempt that was refused may have met permits of
//     calls in doubt.
//   - Marks: the same of stays, without a clock.
//   - Stocks: what the server has available and taken is together never more than was set,
//     and where no permit can have been lost, never less; and what is available is at most
//     what the holds leave that were valid from before the question until after the reply.
//   - Idle permits: from the reply to a release, while a caller waits for no more of the
//     permits that were given back than later grants have left.
package history
