// Package countqueue is the strategy for semaphores: each caller of a process asks for a number
// of permits, and several have theirs at a time. The callers that wait have one queue for each
// semaphore, in the order of their calls:
//
//	         no caller waits, or it fits before all          granted
//	caller ─────────────────────────────────────────▶ asks ────────────▶ has its permits
//	  │ else                                            │ refused  ▲
//	  ▼                                                 ▼          │ its turn in a round
//	waits ◀─────────────────────────────────────────── waits ──────┘
//
// The first of those that wait listens for all. A message, a gap, the end of a lease and the
// poll cap begin a round: the first asks, and each answer says how many permits are left. Then
// the next one behind asks for whom that is enough, and so on. So one that waits for many
// permits does not keep the wake-up from those behind that need few. A caller whose order is
// strict lets none pass, and passes none.
package countqueue
