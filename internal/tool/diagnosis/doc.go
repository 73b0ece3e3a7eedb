// Package diagnosis examines a server: does it do what locks need, and will it go on
// doing so?
//
//	Examine ─▶ connect ─▶ server, scripts, locks, messages ─▶ rights ─▶ settings ─▶ clock, speed
//	                                                                                   │
//	           remove what was left ◀──────────────────────────────────────────────────┘
//
// Each check has one finding, which says what was found, how bad that is, and what to
// do. A check that the server does not let us make is Unknown, which is no fault of
// the server's. Checks try things rather than read versions: a lock is taken and
// freed, a message goes round, and each command that locks need is sent in a form
// that changes nothing. So a user with few rights gets as good an answer as an
// administrator, and a server that only claims to be Redis as good a one as Redis.
//
// What is written stands under names of one run's own that begin with the prefix, has
// a time to live, and is removed at the end.
package diagnosis
