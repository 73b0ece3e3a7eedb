// Package compat tests Redlatch against Redisson. [ShareLocks], called by the root package's test, runs against live
// Redisson clients in the Java program of internal/test/peer, for each row of lockKinds. The package's own tests replay
// recorded vectors from testdata.
package compat
