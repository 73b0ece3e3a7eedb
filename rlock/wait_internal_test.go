package rlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
)

func TestNapIsNeverForNothingNorLongerThanThePollCap(t *testing.T) {
	t.Parallel()
	const pollCap = 10 * time.Second
	a := acquisition{lock: &Lock{engine: &engine.Engine{Config: engine.Config{PollCap: pollCap}}}}
	for ttl, want := range map[time.Duration]time.Duration{
		codec.NoTTL:                    pollCap,
		time.Hour:                      pollCap,
		pollCap:                        pollCap,
		pollCap - 2*time.Millisecond:   pollCap - time.Millisecond,
		time.Millisecond:               2 * time.Millisecond,
		1999*time.Millisecond + 999999: 2*time.Second + 999999,
	} {
		a.ttl = ttl
		require.Equal(t, want, a.nap(), ttl)
	}
	a.ttl = 0 // the server was a moment too slow to delete the key
	for range 1000 {
		require.GreaterOrEqual(t, a.nap(), 10*time.Millisecond)
		require.Less(t, a.nap(), 50*time.Millisecond)
	}
}
