// Package locksuite tests what both kinds of locks must do whatever transport they are on
// and whatever deployment that leads to: one server, what Sentinels watch, a cluster. The
// locks' own packages test far more, on the built-in transport; here is what a transport,
// or a deployment, can spoil.
//
// # The life of a case
//
//	Run ─▶ for each kind ─▶ for each case: clients on transports of their own ─▶
//	what the case does ─▶ clients closed ─▶ nothing is left on the server
//
// Cases run in parallel, with names of their own, on one deployment, and break nothing.
// Tests that break the deployment use a [Contenders]: workers that take a lock again and again,
// from before the failure until after it, and a check that no two of them had it at once,
// and that acquisitions go on.
package locksuite
