package hold_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestReleasesGoBeforeAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch {
			case strings.HasSuffix(c.Name, "acquire"):
				return nil, nil, true
			case strings.Contains(c.Name, "release"):
				return int64(1), nil, true
			}
			return nil, errNotReached, true
		}}
		client, err := redlatch.NewWithTransport(fake)
		require.NoError(t, err)
		released := 0
		for _, l := range []*rlock.Lock{rlock.New(client, "plain"), rfairlock.New(client, "fair")} {
			hold, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
			_, err = l.ForceUnlock(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, client.Close())
		for _, c := range fake.Sent() {
			if strings.Contains(c.Name, "release") {
				released++
				require.True(t, c.Urgent, c.Name)
			}
		}
		require.Equal(t, 4, released)
	})
}
