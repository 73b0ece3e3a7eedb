// Package mux runs the calls of any number of callers over one Redis connection
// at a time. It is the Start half of transport.Transport. It knows nothing of
// locks.
//
// # The life of the connection
//
//	              a call waits               PING answered
//	disconnected ─────────────▶ dialling ───────────────────▶ connected
//	   ▲   ▲                       │                              │
//	   │   └── fails: back-off, ───┘                              │
//	   │       queued calls end not sent                          │
//	   ├───── broken, or its oldest call waits too long: ─────────┤
//	   │      calls in flight end uncertain, queued ones stay queued
//	   │                                                READONLY  │
//	   └── the last reply has come, ──────────────── retired ◀────┘
//	       after a pause
//
//	any of them ──Close──▶ closed: in flight ends uncertain, queued ends not sent
//
// Nothing is dialled until a call waits, and nothing is dialled again until one
// waits again. A connection that has answered calls is replaced at once when it
// breaks; after a failed dial, or a connection that never answered a call, the
// next one comes after a jittered pause. Calls that arrive during the pause wait
// for the dial at its end.
//
// A server that answers READONLY has become a replica: nothing more is written to it,
// what is in flight is answered, and the connection is made anew, since the address may
// lead to the new master by now. While it does not, that is repeated after pauses.
//
// # The life of a call
//
//	Start ─▶ queue ─▶ claimed, put in flight, written ─▶ reply ─▶ done
//	           ▲                                           │
//	           └──── NOSCRIPT: again, as EVAL, first ──────┘
//
// That is the way of calls that overlap. A caller of Lead that is alone takes no queue: it
// writes its call and reads the reply, and goes the other way only when the connection turns
// out to be broken, or the reply does not come soon.
//
// A call is put in flight before its first byte is flushed, so that a write that
// fails half-way fails it like any other call in flight. From that moment its
// fate is the connection's: a reply, or uncertain. A call whose script the server
// did not know has certainly not run, so it goes to the front of the queue, and
// if its caller has left in the meantime it ends there, not sent.
//
// No call is added to 1,024 in flight, no urgent one to 2,048; they stay queued. Vital
// ones are added to any number. So a burst that the server needs seconds for holds up
// no renewal, a caller that waits too long in it learns that nothing was sent, and a
// connection that breaks leaves that many calls in doubt and no more.
//
// # The two tokens
//
//	           a caller of Lead, nothing queued, being written or in flight
//	  free ◀──────────────────────────────────────────────▶ with a caller
//	   ▲ │                 reply, and nothing else in flight      │
//	   │ │ a call is written by the run goroutine,                │ its context ends, it is
//	   │ ▼ or no caller has read for 125 to 250 ms                │ interrupted, a second is
//	with the reader ◀─────────────────────────────────────────────┘ over, or others are in flight
//	     8 calls in a row did not overlap: free again
//
// This is the read token. The write token is with the run goroutine while that is awake,
// and with a caller from when it gets both until its call is flushed. What holds:
//
//   - Only the goroutine with the write token writes to the connection and puts calls in
//     flight; only the goroutine with the read token reads from it and takes calls out.
//   - A caller gets both tokens or none, and only while nothing is queued, being written or
//     in flight. So it writes one small call into buffers that are empty, and reads one
//     reply, its own: it neither waits for other calls nor runs their done.
//   - While anything is flushed and in flight, the read token is not free.
//   - While anything is queued that there is room for, the write token is with a caller,
//     which rouses the run goroutine when it gives it back, or with the run goroutine.
//   - A wait that is given up has read whole bytes and parsed none, so the reader goes on
//     where the caller has stopped.
//   - A connection is over when the reader has the read token for good, which it gets when
//     no caller has it. So Close waits for callers that read.
//
// A connection that has not been read for a millisecond is looked at before a caller writes
// to it: what has ended meanwhile is not written to. Where that is impossible, on Windows, AIX and
// in memory, and on connections that were not made by package wire, the reader has the read
// token for good.
//
// # Who owns what
//
//   - Callers put calls in the queue, under its mutex, and never wait. Those of Lead may get
//     the tokens.
//   - The run goroutine, started by the first call, owns the state above: it
//     dials, writes, and when a connection has broken and its reader has ended,
//     ends what was in flight.
//   - Each dial has a goroutine, so that one that ignores its context cannot hold
//     up the calls that wait for it.
//   - Each connection has a reader, which takes calls out of flight while it has the
//     read token and runs their done, and a guard, which gives the connection up when
//     the oldest call has waited too long, written or not, and when the Mux is closed.
//   - The late runner, which exists while it has work, runs the done of calls
//     that were abandoned, and OnReconnect: never on the reader, which others
//     wait for.
//
// Close waits for all of them. No mutex is held across I/O or while a done runs.
package mux
