package redlatch_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/test/compat"
)

func TestMain(m *testing.M) {
	compat.Member()
	// Most of what the comparison with Redisson does is to wait for leases to end.
	parallel := flag.Lookup("test.parallel").Value // not what the command line says, yet
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 12 {
		_ = parallel.Set("12") // it takes any number
	}
	redistest.Main(m)
}

// TestRedissonAndRedlatchShareLocks runs everything against live Redissons.
func TestRedissonAndRedlatchShareLocks(t *testing.T) {
	t.Parallel()
	compat.ShareLocks(t)
}
