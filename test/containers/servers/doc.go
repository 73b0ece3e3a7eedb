// Package servers finds real servers to run suites on: in containers where a Docker engine
// answers, else the programs that are installed.
//
//	Choose ─▶ REDLATCH_ITEST=local? ──────────────────────────────┐
//	     │                                                        ▼
//	     └─▶ probe, 300 ms ──no engine──▶ asked for? ─no─▶ installed programs ─none─▶ error
//	              │                            └─yes─▶ error
//	              └──it answers──▶ containers
//
// A [Plan] names its choice and the reason in one line. It is made before any test, and
// nothing is started for it; what cannot be started then fails the test that needs it. An
// engine that answers is used: that it lacks an image and cannot get it is a failure and no
// reason to test something else.
//
// # Docker
//
// The probe sends a ping to the engine that DOCKER_HOST names, else to one that has a
// socket in one of the usual places. It is bounded, because the library for containers is
// not: behind a socket that no process serves any more it would hang until the tests' own
// end.
//
// # Clusters
//
// A node of a cluster redirects clients to other nodes, so it must know an address that is
// valid for them. All nodes are therefore in one container, they call themselves 127.0.0.1,
// and each of their ports is published as itself on the loopback interface of this machine:
// the same address leads nodes and clients to the same node. It needs an engine on this
// machine; with one elsewhere clusters are of installed programs. cluster.sh starts a
// cluster, in containers and of installed programs alike, so what containers run is tried
// where there are none.
package servers
