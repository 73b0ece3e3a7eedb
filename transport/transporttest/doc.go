// Package transporttest checks that a transport.Transport keeps its contract.
//
// The author of a transport describes to the suite, in a [Harness], how to
// make one, how to ask the same server over another connection, and, as far as
// possible, how to break things. [Run] does the rest:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(t *testing.T) transporttest.Harness {
//			return transporttest.Harness{
//				New: func(testing.TB) transport.Transport { return adapter.New(addr) },
//				Do:  control.Do,
//			}
//		})
//	}
//
// # The life of a case
//
//	newHarness ──▶ New ──▶ calls, subscriptions, faults ──▶ Close ──▶ every done
//	                                                                 ran once?
//
// Each case is a subtest with a harness of its own. It makes the transports it
// needs, and when it is over it mends what it has broken and closes them. After
// that one more check is made of every case, whatever it was about: each call
// that was started has had its done run, exactly once.
//
// # Faults
//
// A case that needs a fault which the harness cannot cause is skipped and says
// so. Without any fault the suite checks what calls and subscriptions do when
// all is well; it is the faults that show whether a transport can be trusted
// with locks. A breakable proxy in front of the server can cause all of them.
//
//	CutConnections   calls in flight become uncertain, none runs twice
//	CutSubscribers   a gap after each subscription made anew
//	Freeze           nothing that should not wait for the server does
//	HoldReplies      what ran is not taken for what did not
//	HoldRequest      what may still run is not taken for what never will
//	Stop             what cannot be sent is not taken for what may have run
//	Replica          a replica that has not the write is not taken for one that has
//
// Names of keys and channels are unique, so one server may serve many cases, as
// long as a fault strikes only the case that caused it. The suite runs SCRIPT
// FLUSH, and no other command that concerns the server as a whole.
//
// The suite does not look for goroutines left behind: that is for the caller,
// in TestMain or after Run, since only the caller knows what its own client
// library leaves.
package transporttest
