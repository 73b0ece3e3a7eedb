// Package compat tests Redlatch against Redisson. [ShareLocks], which a test of the root package calls, runs against
// live Redisson clients, for each row of lockKinds. The tests of this package replay recorded vectors from testdata.
package compat
