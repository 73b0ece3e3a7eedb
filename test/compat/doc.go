// Package compat tests Redlatch against Redisson. [ShareLocks], called by the root package's test,
// runs against live Redissons; the package's own tests replay recorded vectors from testdata.
//
//	live Redisson ─▶ scripts    its captured scripts against ours, in random steps
//	              ─▶ wake-up    each language's releases wake the other's waiters
//	              ─▶ fleet      processes of both languages share a lock
//	              ─▶ behavior   each language's view of the other's locks
//	              ─▶ crashes    processes die at the worst moments
//	testdata      ─▶ vectors    our scripts have the recorded effects, except for listed differences
//
// Tests of all kinds run for each row of lockKinds. Redisson runs in the Java program of
// internal/test/peer, which scripts/compat.sh builds.
package compat
