// Package rwqueue is the strategy for locks that several readers or one writer hold at a time.
// The callers of one process, in both roles, have one queue for each lock:
//
//	           the turn is free, or comes             granted
//	writer ─────────────────────────────▶ has the turn ──────▶ holds ── released ─┐
//	                                        │ refused: waits ▲                    │
//	                                        └────────────────┘                    ▼
//	                    the readers that wait ask, all together, and then the next writer
//
//	           no writer waits, or a burst is left          granted
//	reader ──────────────────────────────────────▶ asks ────────────▶ holds
//	   │ else                                       │ refused
//	   ▼                                            ▼
//	 parked ◀── refused, and there is one ─────── leader: listens, and asks for all
//	   │                                            │ granted, gave up
//	   └──────▶ asks ◀──────────────────────────────┘
//
// One writer talks to Redis at a time, and has the turn until its hold is over; the others cost
// nothing. Of the readers that were refused one listens, and when it is granted the lock the
// others ask, too. A writer that waits holds back new readers, so that those of this process
// drain: see holdsBack.
package rwqueue
