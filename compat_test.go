package redlatch_test

import (
	"testing"

	"github.com/redlatch/redlatch/test/compat"
)

// TestRedissonAndRedlatchShareLocks runs everything against live Redissons.
func TestRedissonAndRedlatchShareLocks(t *testing.T) {
	t.Parallel()
	compat.ShareLocks(t)
}
