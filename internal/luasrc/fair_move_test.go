package luasrc

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// A user without the right to the fast commands gets the same result by slow ones.
func TestDeadlinesOfManyMoveAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lacks  string
		queued int64
		moves  string
	}{
		{"", 100, "zunionstore"}, {"", 5, "zunionstore"}, {"", 4, "zincrby"},
		{"-sadd", 100, "zincrby"}, {"-zunionstore", 100, "zincrby"},
	} {
		for name, take := range map[string]func(f *fairPlayer, owner string, now, wait int64) *fairPlayer{
			"try": (*fairPlayer).try, "acquire": (*fairPlayer).acquire,
		} {
			t.Run(fmt.Sprint(name, c.lacks, c.queued), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				server.Do(t, "ACL", "SETUSER", "caller", "on", "nopass", "~*", "&*", "+@all")
				if c.lacks != "" {
					server.Do(t, "ACL", "SETUSER", "caller", c.lacks)
				}
				s := newQuietStage(t, server)
				_, err := s.conn.Do("AUTH", "caller", "any")
				require.NoError(t, err)
				f := s.newFairPlayer()
				f.enqueue(append([]entry{in(a1, 0)}, entriesFrom(c.queued, t0+10)...)...)
				server.Do(t, "CONFIG", "RESETSTAT")
				take(f, a1, -1, fairWait)
				require.NoError(t, f.err)
				want := int64(1)
				if c.moves == "zincrby" {
					want = c.queued
				}
				require.Equal(t, want, server.CommandStats(t)[c.moves])

				// Only the client sets a TTL of the deadlines, and only it removes one.
				timeouts := codec.TimeoutKey(f.l)
				server.Do(t, "DEL", f.l)
				server.Do(t, "PEXPIRE", timeouts, 1_000_000)
				_, err = s.run(filled(func(call *transport.Call) {
					fairLock(f.l, "PUBLISH").Try(call, t0-1_000_000, "waiter 0", 1, fairLease)
				}))
				require.NoError(t, err)
				require.EqualValues(t, 1, server.Do(t, "EXISTS", f.l))
				left, _ := server.Do(t, "PTTL", timeouts).(int64)
				require.InDelta(t, 970_000, left, 30_000)
			})
		}
	}
}
