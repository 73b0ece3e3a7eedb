// Package compat compares Redlatch with Redisson itself: [ShareLocks], which the test of
// the root package calls, against live Redissons, and tests of its own against recordings
// of them, in testdata.
//
//	each release ─▶ a JVM ─▶ scripts    its scripts, captured, and ours in random steps
//	                       ─▶ wake-up    each side wakes the other's waiters, of each kind
//	                       ─▶ fleet      processes of both languages share one lock
//	                       ─▶ behaviour  what either side sees of the other's locks, of each kind
//	                       ─▶ crashes    processes that die at the worst moments, of each kind
//	                       ─▶ fair, fenced, read and write, semaphores and latches
//	recorded vectors ─▶ our scripts ─▶ the same bytes, but for the listed differences
//
// The kinds of locks are a table, lockKinds: tests of all kinds run for each of its rows.
//
// The Java program that runs Redisson is that of internal/test/peer; scripts/compat.sh
// builds it.
package compat
