package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// shortLease is one that a holder renews every two seconds.
const shortLease = 6 * time.Second

// reportedLease is one whose loss is reported a whole second before it ends: a machine with too
// much to do, on which these tests run, may be late by less.
const reportedLease = 12 * time.Second

// The bytes of an acquire may lie in a frozen server for longer than a lease,
// and run when it wakes.
func TestU5AcquireThatRunsAfterALongFreezeLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(shortLease), redlatch.WithCommandTimeout(time.Second))
	loadScripts(t, connect(t, s.URL()))
	before, key := grants(t, s), redistest.Key(t)
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := rlock.New(client, key).Lock(ctx, rlock.WithLease(shortLease))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-time.After(shortLease + 3*time.Second) // longer than a question lasts that is begun within the lease
	s.Resume()
	resumed := time.Now()
	until(t, soon, "the late grant", func() bool { return grants(t, s) == before+1 })
	until(t, time.Until(resumed.Add(time.Second+slack)), "the lock is free", func() bool { return !locked(t, s, key) })
}
