// Package loss measures when holders learn that their lock is lost, relative to the moment
// from which another client could acquire it.
//
// # A trial
//
// A trial is one hold of a lock whose lease is renewed, on a server that is then lost. A
// cell is many trials at once, on a server of their own:
//
//	take        clients take their locks, each at a random moment, so that each is
//	            somewhere else between two renewals when it happens
//	fault       one Way of losing Redis strikes all of them
//	watch       the sampler looks at every hold until it reports its end, or until
//	            it has been late for so long that the cell gives up
//	account     the server has when each key expires, or expired
//	repair      the server goes on, and the clients are closed
//
// # When a holder learns of a loss
//
// One goroutine, the [Sampler], asks all holds of all cells again and again, without a
// pause, by what the client offers for it: Hold.Err, the error of a context, a time to
// compare with. A hold counts as ended when the first look has come back that found it so.
// The time since the look before is the resolution of that trial, and is reported.
//
// # When another client could acquire
//
// The server writes each expiry that it sets to its append-only file, in milliseconds of
// the clock of this machine and before it answers a client. The last one that it wrote is
// the moment, whether the server is frozen, dead, or prolongs leases for clients that do
// not get its replies. A key is there until that millisecond is over, so the moment is
// taken for up to one millisecond too early, against the holder.
//
// A rival is the second opinion, wherever the server still answers. It goes around the
// broken network and asks which keys exist, every few milliseconds. Where it finds a key
// gone before it expired, the holder has released it itself, which it did after it had
// learned of the loss, and the trial is counted as such.
//
// # What is not lost but gone
//
// Two ways make the server forget: the keys are deleted, or an empty server takes its
// place. No holder can know before; what counts is how late it is.
package loss
