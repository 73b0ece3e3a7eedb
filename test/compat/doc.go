// Package compat tests Redlatch against Redisson. TestRedissonAndRedlatchShareLocks runs against live Redisson clients,
// for each row of lockKinds. The other tests replay recorded vectors from testdata.
package compat
