//go:build unix

package rlock_test

import (
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// A lease short enough to be soon over when its holder dies survives what garbage
// collectors, hypervisors and busy machines do to one that lives.
func TestU36LeaseOfThreeSecondsSurvivesStallsOfASecond(t *testing.T) {
	testlevel.All(t, "a real lease, 7 s")
	t.Parallel()
	redistest.UnlessTheMachineStalls(t, func() error { return stallHolder(t, 3*time.Second) })
}

// stallHolder stops a holder for a second, again and again, and returns an error when it has lost
// the lock.
func stallHolder(t *testing.T, lease time.Duration) error {
	t.Helper()
	s, name := redistest.Shared(t), redistest.Key(t)
	holder := startHolder(t, s.URL(), name, lease)
	held := owners(t, s, name)
	for _, phase := range []time.Duration{0, 900 * time.Millisecond, 1800 * time.Millisecond} {
		<-time.After(phase) // since a renewal, or what comes of several
		require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
		<-time.After(time.Second) // the stall
		require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
		last := ttl(t, s, name)
		until(t, soon, "a renewal, or the end of the lease", func() bool {
			before := last
			last = ttl(t, s, name)
			return last > before || last < 0
		})
		if now := owners(t, s, name); len(held) != 1 || !maps.Equal(held, now) {
			return fmt.Errorf("it was held by %v, and after a stall by %v", held, now)
		}
	}
	return nil
}
