//go:build unix

package rlock_test

import (
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
	s, name := redistest.Shared(t), redistest.Key(t)
	holder := startHolder(t, s.URL(), name)
	held := owners(t, s, name)
	require.Len(t, held, 1)
	for _, phase := range []time.Duration{0, 900 * time.Millisecond, 1800 * time.Millisecond} {
		<-time.After(phase) // since a renewal, or what comes of several
		require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
		<-time.After(time.Second) // the stall
		require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
		awaitRenewal(t, s, name)
		require.Equal(t, held, owners(t, s, name))
	}
}
