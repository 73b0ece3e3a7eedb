// Package servers finds real servers to run suites on: in containers where a Docker
// engine answers, else the programs that are installed.
//
//	Choose ─▶ REDLATCH_ITEST=local? ──────────────────────────────┐
//	     │                                                        ▼
//	     └─▶ probe, 300 ms ──no engine──▶ asked for? ─no─▶ installed programs ─none─▶ error
//	              │                            └─yes─▶ error
//	              └──it answers──▶ containers
//
// A [Plan] says in one line what it comes to, and why. It is made before any test, and
// nothing is started for it; what cannot be started then fails the test that needs it.
// An engine that answers is used: that it lacks an image and cannot get it is a failure
// and no reason to test something else.
//
// # Docker
//
// The probe asks the engine that DOCKER_HOST names, else whatever has a socket in one of
// the usual places, for nothing but a sign of life. It is bounded, since what tests with
// containers are made of asks without a bound: behind a socket that nobody serves any
// more they would hang until the tests' own end.
//
// # Clusters
//
// A node of a cluster tells clients where other nodes are, so it must know an address
// that is good for them. All nodes are therefore in one container, they call themselves
// 127.0.0.1, and each of their ports is published as itself on the loopback interface of
// this machine: the same address leads nodes and clients to the same node. It needs an
// engine on this machine; with one elsewhere clusters are of installed programs.
// cluster.sh starts a cluster, in containers and of installed programs alike, so what
// containers run is tried where there are none.
package servers
