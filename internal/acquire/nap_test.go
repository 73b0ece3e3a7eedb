package acquire_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/reply"
)

func TestNapIsPositiveAndAtMostPollCap(t *testing.T) {
	t.Parallel()
	const pollCap = 10 * time.Second
	for ttl, want := range map[time.Duration]time.Duration{
		reply.NoTTL:                    pollCap,
		time.Hour:                      pollCap,
		pollCap:                        pollCap,
		pollCap - 2*time.Millisecond:   pollCap - time.Millisecond,
		time.Millisecond:               2 * time.Millisecond,
		1999*time.Millisecond + 999999: 2*time.Second + 999999,
	} {
		require.Equal(t, want, acquire.Nap(ttl, pollCap), ttl)
	}
	for range 1000 { // the server was a moment too slow to delete the key
		require.GreaterOrEqual(t, acquire.Nap(0, pollCap), 10*time.Millisecond)
		require.Less(t, acquire.Nap(0, pollCap), 50*time.Millisecond)
	}
}
