// Package containers runs the suites that hold for every server, on real ones of several
// kinds: what both kinds of locks do (internal/test/locksuite), and what a transport does
// (transport/transporttest). They run over the built-in transport and over both
// adapters, on single servers and, over the adapters, on clusters.
//
//	TestMain: servers.Choose ─▶ "itest: …", the line that says on what
//	each kind of server ─▶ start one ─▶ each client ─▶ locks, conformance ─▶ end it
//
// It has tests only. All suites of a server or cluster share it, side by side, and break
// nothing but the network, which each has to itself.
package containers
