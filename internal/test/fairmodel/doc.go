// Package fairmodel is a fair lock in plain Go: what Redisson's scripts do with the
// lock, its queue and its deadlines, step by step, and what this library's scripts
// do where they differ on purpose, each marked as such.
//
// It serves twice. The tests of internal/luasrc play random steps on it and on real
// servers, so it is as exact as they are. And test/simulation/fairsim simulates fleets on
// it, for months of their time.
//
// It is for tests and tools: no program of a user's contains it.
package fairmodel
