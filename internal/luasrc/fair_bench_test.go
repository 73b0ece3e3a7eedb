package luasrc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// BenchmarkFairDeadlines compares, on a real server, moving the deadlines of a
// queue together with moving each by a ZINCRBY of its own: the time of the whole
// script, round trip included, and how many times as long the latter takes. A
// server that logs its commands, as one with replicas does, pays for each of them.
func BenchmarkFairDeadlines(b *testing.B) {
	for _, appendOnly := range []string{"no", "yes"} {
		server := redistest.Start(b, redistest.WithArgs("--appendonly", appendOnly))
		for _, script := range []*transport.Script{FairAcquire, FairGiveUp} {
			for _, queued := range []int{1000, 10000} {
				b.Run(fmt.Sprintf("%s/queued=%d/appendonly=%s", script.Name(), queued, appendOnly), func(b *testing.B) {
					newLongQueue(b, server.Dial(b), queued).race(b, script)
				})
			}
		}
	}
}

// oneByOne has what moves deadlines in a script, from where to where, and what
// moves them one by one.
var oneByOne = map[*transport.Script]struct{ from, to, instead string }{
	FairAcquire: {"    local moved = ", "    for i = 1, moved", "    local moved = false\n"},
	FairGiveUp: {"    local moved = ", "end\nfor _, owner in", `
    for i = front, #stay do
        redis.call('ZINCRBY', timeouts, -falls[i], stay[i])
    end
`},
}

func slowly(b *testing.B, script *transport.Script) *transport.Script {
	b.Helper()
	how := oneByOne[script]
	before, rest, found := strings.Cut(script.Text(), how.from)
	require.True(b, found)
	_, after, found := strings.Cut(rest, how.to)
	require.True(b, found)
	return transport.NewScript("slow "+script.Name(), before+how.instead+how.to+after)
}

// longQueue is a fair lock with many waiters.
type longQueue struct {
	conn redis.Conn
	keys []any
}

func newLongQueue(b *testing.B, conn redis.Conn, queued int) *longQueue {
	b.Helper()
	q := &longQueue{conn: conn, keys: []any{"lock", "queue", "timeouts", "channel"}}
	_, err := conn.Do("DEL", q.keys[:3]...)
	require.NoError(b, err)
	for i := range queued {
		require.NoError(b, conn.Send("RPUSH", q.keys[1], fairOwner(i)))
		require.NoError(b, conn.Send("ZADD", q.keys[2], t0*int64(min(i, 1))+int64(i)*fairWait+1, fairOwner(i)))
	}
	_, err = conn.Do("")
	require.NoError(b, err)
	return q
}

// race runs both ways, block by block: what else the machine does then hits both,
// and the garbage of each is mostly its own to collect. Medians leave out the rest.
func (q *longQueue) race(b *testing.B, script *transport.Script) {
	b.Helper()
	slow := slowly(b, script)
	var together, one []time.Duration
	for b.Loop() {
		for range 10 {
			together = append(together, q.run(b, script))
		}
		for range 10 {
			one = append(one, q.run(b, slow))
		}
	}
	slices.Sort(together)
	slices.Sort(one)
	fast, slowest := together[len(together)/2], one[len(one)/2]
	b.ReportMetric(float64(fast.Microseconds()), "µs/together")
	b.ReportMetric(float64(slowest.Microseconds()), "µs/one-by-one")
	b.ReportMetric(float64(slowest)/float64(fast), "times-faster")
	b.ReportMetric(0, "ns/op")
}

// run runs the script for the first in the queue, and puts it back there: before
// the others, however often their deadlines were moved, and not dead at time 0.
func (q *longQueue) run(b *testing.B, script *transport.Script) time.Duration {
	b.Helper()
	keys, args := q.keys[:3], []any{0, fairOwner(0), fairWait, fairLease}
	if strings.HasSuffix(script.Name(), FairGiveUp.Name()) {
		keys, args = q.keys, []any{0, fairOwner(0), fairWait, "PUBLISH", "0"}
	}
	_, err := q.conn.Do("SCRIPT", "LOAD", script.Text())
	require.NoError(b, err)
	all := append(append([]any{script.SHA(), len(keys)}, keys...), args...)
	begin := time.Now()
	_, err = q.conn.Do("EVALSHA", all...)
	spent := time.Since(begin)
	require.NoError(b, err)
	require.NoError(b, q.conn.Send("DEL", q.keys[0]))
	require.NoError(b, q.conn.Send("LPUSH", q.keys[1], fairOwner(0)))
	require.NoError(b, q.conn.Send("ZADD", q.keys[2], 1, fairOwner(0)))
	_, err = q.conn.Do("")
	require.NoError(b, err)
	return spent
}
