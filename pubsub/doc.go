// Package pubsub listens to any number of Redis channels over one connection.
// It knows nothing of locks: it turns messages, and the gaps in which messages
// may have been missed, into wake-ups.
//
// # The life of a channel
//
// Many listeners share one channel, and the channel is subscribed as long as it
// has listeners. Two facts rule it: whether it is wanted (has listeners) and
// whether it is asked for (the last command sent for it on the present
// connection was SUBSCRIBE). The writer makes asked follow wanted; the server's
// acknowledgements, which come in the order of the commands, say when it has.
//
//	          first listener          writer: SUBSCRIBE          its ack
//	absent ───────────────▶ wanted ───────────────────▶ asked ──────────▶ acked
//	  ▲                       ▲ ▲                         │                 │
//	  │                       │ └── connection lost, or ──┴─────────────────┤
//	  │                       │     unsubscribed by the server, or          │
//	  │                       │     refused for now (after a second)        │
//	  │        a new listener │                                             │ last listener
//	  └──────────────────── leaving ◀───────────────────────────────────────┘ leaves
//	      ack of UNSUBSCRIBE, or
//	      connection lost
//
// Listeners that come and go between two rounds of the writer cost no command.
// A channel with several commands under way is acked only by the answer to the
// last of them, so a subscription that is about to be cancelled in the server's
// input never passes for a live one.
//
// # The life of a listener
//
//   - pending: Subscribe waits for the acknowledgement. It ends with the
//     caller's context, with Close, with a failed dial, or when the server refuses
//     the channel, if only for now; see [Subscriber.Subscribe].
//   - established: messages become events. When the channel had to be
//     subscribed anew, the acknowledgement becomes an event with Gap set:
//     whatever was published in between is lost, and the listener must look for
//     itself.
//   - over: closed by its owner, or failed for good, because the server refuses
//     the channel (NOPERM) or the Subscriber was closed. After a failure Events
//     is closed and Err says why.
//
// A [Sink] is a listener that is called instead: Acked, Message and Failed are what
// becomes of an acknowledgement, a message and the end. It is for a transport that
// subscribes on several nodes for one caller, as in a cluster.
//
// # Who does what
//
// The state is guarded by one mutex that is never held across I/O. The run
// goroutine, which starts with the first Subscribe, dials, writes, keeps the
// connection alive and reconnects; each connection has one more goroutine, which
// reads. Nothing else runs. The reader never waits for a listener: an event that
// finds the previous one still unread is dropped, since that one wakes the
// listener already.
//
// # What is believed
//
// An acknowledgement counts only when it answers the oldest unanswered command
// by kind and channel. An error names no channel, so it answers the oldest
// command; when that subscribed to many channels, each is asked for again by
// itself, so that one forbidden channel fails alone. An unsubscribe that answers
// nothing is the server's own doing (a slot that moved) and is undone.
//
// A new connection begins with a PING. An error in answer to it, other than
// NOPERM, concerns the server as a whole (it is loading, it wants a password):
// then nothing is refused for good, and the connection is tried again.
//
// CLUSTERDOWN and TRYAGAIN in answer to a subscription may concern one slot of many.
// While the server serves another channel, only the one that it refuses pauses: it is
// asked for again each second, on the same connection. A server that serves none may
// be the wrong one by now, and is connected to again.
package pubsub
