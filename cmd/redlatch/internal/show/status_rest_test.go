package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// listeningAll makes one connection listen as many waiters do.
func listeningAll(t *testing.T, s *redistest.Server, name string, from, to int) {
	t.Helper()
	c := s.Dial(t)
	for i := from; i < to; i++ {
		require.NoError(t, c.Send("SUBSCRIBE", codec.OwnerChannel(name, program.LongOwner(i))))
	}
	require.NoError(t, c.Flush())
	for range to - from {
		_, err := c.Receive()
		require.NoError(t, err)
	}
}

func TestStatusShowsTheFirstOfALongQueueAndCountsTheRest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name = "contended"
	program.LongQueue(t, s, name, program.RedissonOwner, 1500)
	listeningAll(t, s, name, 0, 70)
	listeningAll(t, s, name, 900, 1495)
	statusGolden(t, s, name, 0)

	out := program.OK(t, s.URL(), "status", "--waiters", "0", name)
	require.Contains(t, out, "\n  queue  1500 waiting\n")
	require.NotContains(t, out, "more")
	require.Equal(t, 665, strings.Count(out, "  subscribed yes,"))
	require.Equal(t, 835, strings.Count(out, "  subscribed no,"))
	place := 0
	for line := range strings.Lines(out) {
		if strings.Contains(line, "deadline") {
			place++
			require.Contains(t, line, fmt.Sprintf("%7d  %s   deadline in ", place, program.LongOwner(place-1)))
		}
	}
	require.Equal(t, 1500, place)
	for show, says := range map[string]string{
		"70": "and 1430 more: 595 subscribed, 835 not subscribed", "1495": "and 5 more, all not subscribed",
	} {
		got := program.Finish(t, s.URL(), "status", "--waiters", show, name)
		require.Contains(t, program.Words(got.Stdout), " "+says+" (--waiters 0 shows all)")
	}
	require.Equal(t, program.Outcome{Code: 2, Stdout: "", Stderr: "redlatch: --waiters must be how many to show, or 0 for all\n"}, program.Finish(t, s.URL(), "status", "--waiters", "-1", name))

	// A user that may not count is not asked for more than one that may not read.
	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">password", "+ping", "+eval", "+evalsha", "+hgetall", "+pttl", "+lrange", "+zrange", "allkeys")
	got := program.Finish(t, "redis://reader:password@"+s.Addr(), "status", name)
	require.Contains(t, got.Stdout, "\n         and 1480 more, all unknown (--waiters 0 shows all)\n")
	require.Contains(t, program.Words(got.Stdout), "note listeners cannot be counted: redis: NOPERM")
}

// No command of status and watch is longer the longer the queue is. It is not parallel:
// other tests would make the machine busier.
func TestLookingAtALongQueueIsNoBurden(t *testing.T) {
	s := redistest.Start(t)
	const name, waiting = "billing-run", 5000
	program.LongQueue(t, s, name, program.RedissonOwner, waiting)
	for _, args := range [][]string{{"status", name}, {"status", "--waiters", "0", name}, {"watch", "--for", "1s", name}} {
		slow := program.WatchSlow(t, s, 2*time.Millisecond)
		program.OK(t, s.URL(), args...)
		require.Empty(t, slow(), "%v", args)
	}
}

func TestStatusReadsAPartOfAVeryLongQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, waiting = "billing-run", inspect.LookedAt + 500
	program.LongQueue(t, s, name, program.RedissonOwner, waiting)
	listeningAll(t, s, name, waiting-1, waiting)
	longest := program.WatchReads(t, s, waiting)
	said := func(args ...string) string {
		out := program.OK(t, s.URL(), append([]string{"status", name}, args...)...)
		require.LessOrEqual(t, longest(), 400, "200 places and their deadlines")
		return program.Words(out)
	}
	text := said()
	require.Contains(t, text, "queue 10500 waiting 1 "+program.LongOwner(0))
	require.Contains(t, text, " and 10480 more: 9980 not subscribed, 500 unknown (--from 21 shows the next ones)")

	text = said("--waiters", "0")
	require.Equal(t, 10_000, strings.Count(text, " deadline in "))
	require.Contains(t, text, " and 500 more, all unknown (--from 10001 shows the next ones)")
	require.Equal(t, 10_000, strings.Count(said("--waiters", "20000"), " deadline in "), "no more")

	text = said("--from", "10001", "--waiters", "300")
	require.Contains(t, text, "queue 10500 waiting 10001 "+program.LongOwner(10000))
	require.Contains(t, text, " 10300 "+program.LongOwner(10299))
	require.Contains(t, text, " and 10200 more, all unknown (--from 10301 shows the next ones)")
	require.Equal(t, 300, strings.Count(text, " deadline in "))
	text = said("--from", "10490", "--waiters", "0")
	require.Contains(t, text, " 10500 "+program.LongOwner(10499))
	require.Contains(t, text, " subscribed yes, Redisson and 10489 more, all unknown")
	require.NotContains(t, text, "--from")
	require.Contains(t, said("--from", "20000"), "queue 10500 waiting and 10500 more, all unknown")

	var reported struct {
		Length int `json:"queue_length"`
		Queue  []inspect.Waiter
		More   more
	}
	got := program.Finish(t, s.URL(), "status", "--json", name)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported), got.Stderr)
	require.Equal(t, waiting, reported.Length)
	require.Len(t, reported.Queue, shownWaiters)
	require.Equal(t, waiting-shownWaiters, reported.More.Count)
	require.Equal(t, program.Outcome{Code: 2, Stdout: "", Stderr: "redlatch: --from must be a place in the queue, 1 for the next one\n"},
		program.Finish(t, s.URL(), "status", "--from", "0", name))
}

// What cannot be read of the rest is shown as unknown.
func TestTheRestOfAQueueMayBeUnknown(t *testing.T) {
	t.Parallel()
	length := 100
	s := &status{QueueLength: &length, Queue: []inspect.Waiter{{Subscribed: "yes"}, {Subscribed: "no"}, {Subscribed: "unknown"}}}
	s.record(nil, nil, errNotCountable)
	s.show(2)
	require.Equal(t, &more{Count: 98, Unknown: 98}, s.More)
	require.Equal(t, "not; countable", s.Uncounted)
	s.Queue = append(s.Queue, inspect.Waiter{Subscribed: "yes"}, inspect.Waiter{Subscribed: "no"})
	s.show(1)
	require.Equal(t, &more{Count: 99, Subscribed: 1, NotSubscribed: 2, Unknown: 96}, s.More)
	require.Equal(t, "and 99 more: 1 subscribed, 2 not subscribed, 96 unknown", s.More.String())
}
