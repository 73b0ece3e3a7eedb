// Package compat compares Redlatch with Redisson itself: [ShareLocks], which the test of
// the root package calls, against live Redissons, and tests of its own against recordings
// of them, in testdata.
//
//	each release ─▶ a JVM ─▶ scripts    its scripts, captured, and ours in random steps
//	                       ─▶ wake-up    each side wakes the other's waiters
//	                       ─▶ fleet      processes of both languages share one lock
//	                       ─▶ behaviour  owners that travel, name mappers, questions
//	                       ─▶ crashes    processes that die at the worst moments
//	                       ─▶ fair       all of it for the fair lock
//	recorded vectors ─▶ our scripts ─▶ the same bytes, but for the listed differences
//
// The Java program that runs Redisson is that of internal/test/peer; scripts/compat.sh
// builds it.
package compat
