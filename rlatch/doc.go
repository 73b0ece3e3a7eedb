// Package rlatch is Redisson's count-down latch, RCountDownLatch: callers wait until others have
// counted down as often as was set. [New] makes it.
//
//	       TrySet(n)                    CountDown
//	open ─────────────▶ closed(n) ─────────────────▶ closed(n-1)
//	 ▲                     │  ▲                          │
//	 │ CountDown to 0      │  └──────────────────────────┤
//	 ├─────────────────────┴─────────────────────────────┤
//	 │ Delete, or a time to live that was set by hand    │
//	 └───────────────────────────────────────────────────┘
//
// A latch that was never set is open, and so is one whose count is 0: on the server both are a
// key that does not exist. So set the count before the first caller waits.
//
// # The life of a wait
//
//	Wait ──ask──▶ open ──────────────────────────────────▶ nil
//	       │                                          ▲
//	       │ closed                                   │
//	       ▼                                          │
//	   subscribe (acknowledged)                       │
//	       │                                          │
//	       ▼                                          │
//	     ask ◀──────────────────────────┐             │
//	       │ └── open ──────────────────┼─────────────┘
//	       ▼                            │
//	   wait for the first of: message, gap, poll cap
//	       │ context, client closed
//	       ▼
//	   give up
//
// A message never says that the latch is open: it is a reason to ask. So a message that is false
// costs one question, where Redisson's waiters ask without a pause until the next message; and
// a message that is missed, a key that was deleted or one that has expired costs one poll cap
// (redlatch.WithPollCap), where Redisson's waiters sleep on for ever.
//
// # One latch for one round
//
// A waiter sees a latch that was set again at once as one that is still closed. Use a new name
// for each round, such as "import:2026-11-24", rather than the same latch again.
//
// # What a crash loses
//
// The count has no owners. A worker that dies before it has counted down keeps the latch closed
// for ever, and a CountDown whose reply is lost may have counted or not: it is
// redlatch.ErrUncertain, and is not repeated. Give waiters a deadline. Where each worker's part
// must count exactly once, keep a set of the parts that are done, and not a number.
package rlatch
