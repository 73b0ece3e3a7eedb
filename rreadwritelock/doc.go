// Package rreadwritelock is Redisson's read/write lock, RReadWriteLock: several readers hold it
// at a time, or one writer alone. [New] makes it. [Lock.Read] and [Lock.Write] are its two
// roles, each a *rlock.Lock with that type's methods, options and errors.
//
// # States
//
//	          first reader                    first reader of the writer's context
//	free ────────────────────▶ read(n)   ◀─┐  ┌────────────────────────────────────┐
//	 ▲ ▲                        │   ▲      │  │                                    ▼
//	 │ │  the last reader left  │   └──┐   │ written ──────────────────────▶ written and read
//	 │ └────────────────────────┘  more│   │  ▲  │                                  │
//	 │                          readers┘   │  │  │ the writer left      the writer left: downgrade
//	 │                                     └──┼──┼──────────────────────────────────┘
//	 └────────────────────────────────────────┼──┘
//	                  first writer            │
//	free ─────────────────────────────────────┘
//
// A lease that runs out is a holder that left. A reader that crashed is in the way of a writer
// until its own lease is over, whatever other readers do.
//
// # Which context may do what
//
// The context of a hold ([rlock.Hold.Context]) is its proof, for both roles:
//
//	a context of   asks to read                    asks to write
//	a reader       reads again                     ErrUpgrade, at once
//	a writer       reads, under the same owner     writes again, after its other inner holds
//	neither        waits for the writer            waits for all others
//
// A writer's hold and those that read within it end in any order, each with its own Unlock,
// lease and renewal. When the writer's ends first, the lock goes on as a reader's: a downgrade,
// which lets waiting readers in. Readers with one context do not wait for each other; and a
// writer's context does not keep what reads with it from what writes with it. Neither can be
// handed over or left to its lease while the owner has both roles; then it is
// redlatch.ErrReentered.
//
// # Who goes first
//
// There is no queue on the server, and no order between processes. In one process writers come
// one after the other. When a writer has left, the readers that wait come in together, and then
// the next writer. A writer that waits holds new readers of its client back, so that it gets in
// beside any number of them that take turns; see [WithoutWriterPreference]. Readers of other
// processes, and Redisson's, know nothing of it and may keep it out for as long as some of them
// always read.
//
// # Leases of readers
//
// Each reader has a lease of its own, and the lock lasts as long as the longest. Redisson's
// readers set it to their watchdog timeout at each renewal, also when another reader was
// promised more. So a reader's lease that is longer than the client's watchdog timeout, also a
// fixed one of rlock.WithLease, is confirmed every third of that timeout, which mends it. A
// reader whose confirmations do not arrive is told that it has lost the lock before that
// timeout is over ([rlock.Hold.Remaining] counts it). This holds where no program of the fleet
// has a shorter lockWatchdogTimeout than this client.
//
// # Other kinds
//
// A name is that of one kind of lock. A plain lock of the name, RLock in Java, is
// redlatch.ErrWrongType for Lock, TryLock, Do and IsLocked, and admin.Inspect says so. Redisson's
// read/write lock ignores it and adds its fields to it: both have the lock then. The calls that
// only end or go on with a hold change nothing of it: UnlockAs and Resume return
// redlatch.ErrNotHeld, and ForceUnlock false. A key that is no hash is redlatch.ErrWrongType for
// all of them but Resume, which returns redlatch.ErrNotHeld.
//
// IsLocked is about the role: of the reader's it is true while a reader has the lock, also the
// writer as one. ForceUnlock frees the lock only while it is held in that role. A refusal names
// the writer, and no reader.
package rreadwritelock
