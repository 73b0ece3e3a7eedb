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
	// The comparison with Redisson mostly waits for leases to expire.
	parallel := flag.Lookup("test.parallel").Value // the default: flags are not parsed yet
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 12 {
		_ = parallel.Set("12") // accepts any number
	}
	redistest.Main(m)
}

// TestRedissonAndRedlatchShareLocks runs all scenarios against live Redissons.
func TestRedissonAndRedlatchShareLocks(t *testing.T) {
	t.Parallel()
	compat.ShareLocks(t)
}
