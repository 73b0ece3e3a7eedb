package show

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// addChoice creates locks that differ in each property by which the command can choose.
func addChoice(t *testing.T, s redistest.Target) {
	t.Helper()
	s.Do(t, "HSET", "soon", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "soon", 600_000)
	s.Do(t, "HSET", "late", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "late", time.Hour.Milliseconds())
	s.Do(t, "HSET", "never", program.SomeOwner, 1)
	program.Enqueue(t, s, "late", program.RedissonOwner, time.Hour)
	program.Enqueue(t, s, "late", program.RedlatchOwner, time.Hour)
	program.Listen(t, s, "late", program.RedissonOwner)
	program.Listen(t, s, "late", program.RedlatchOwner)
	program.Enqueue(t, s, "stuck", program.RedissonOwner, time.Hour)
}

func TestListFiltersSortsAndCounts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addChoice(t, s)
	for _, c := range []struct {
		flags string
		names []string
		count string
	}{
		{"", []string{"late", "never", "soon", "stuck"}, "4 locks"},
		{"--sort name --limit 2", []string{"late", "never"}, "2 of 4 locks"},
		{"--limit 3", []string{"late", "never", "soon"}, "3 of 4 locks"},
		{"--sort lease", []string{"stuck", "soon", "late", "never"}, "4 locks"},
		{"--sort queue", []string{"late", "stuck", "never", "soon"}, "4 locks"},
		{"--sort queue --limit 1", []string{"late"}, "1 of 4 locks"},
		{"--stuck", []string{"stuck"}, "1 lock"},
		{"--no-ttl", []string{"never"}, "1 lock"},
		{"--dead-waiters", []string{"stuck"}, "1 lock"},
		{"--kind plain --sort lease", []string{"soon", "never"}, "2 locks"},
	} {
		args := append([]string{"list"}, strings.Fields(c.flags)...)
		out := program.OK(t, s.URL(), args...)
		var names []string
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for _, line := range lines[1 : len(lines)-1] {
			if !strings.HasPrefix(line, " ") {
				names = append(names, strings.Fields(line)[0])
			}
		}
		require.Equal(t, c.names, names, c.flags)
		require.Equal(t, c.count, lines[len(lines)-1], c.flags)
		if c.flags != "" {
			require.Equal(t, c.names, listedNames(t, s, args[1:]...), c.flags)
		}
	}
	require.Equal(t, program.Outcome{Code: 0, Stdout: "", Stderr: "redlatch: no locks here that are free with a queue that match l*\n"},
		program.Finish(t, s.URL(), "list", "--stuck", "l*"))
}

func TestListCountsUnsubscribedWaiters(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addChoice(t, s)
	for i := range 450 { // more than are read at once
		program.Enqueue(t, s, "late", program.LongOwner(i), time.Hour)
	}
	text := program.Start(t, s.URL(), "list", "--dead-waiters")
	out := program.OK(t, s.URL(), "list", "--dead-waiters", "--sort", "queue", "--json")
	var counts []float64
	for line := range strings.Lines(out) {
		l := program.JSON(t, line)
		n, _ := l["not_subscribed"].(float64)
		counts = append(counts, n)
	}
	require.Equal(t, []float64{450, 1}, counts)
	require.Contains(t, text.Outcome(program.Soon).Stdout, "  dead   450 of 452 waiters have no subscriber\n")

	s.Do(t, "ACL", "SETUSER", "blind", "reset", "on", ">password", "+@all", "-pubsub", "~*", "&*")
	program.Fails(t, s.UserURL("blind"), 1, "--dead-waiters: cannot detect dead waiters: cannot count subscribers on ", "list", "--dead-waiters")
}

func TestFirstSelectsWithoutKeepingAll(t *testing.T) {
	t.Parallel()
	kept := (&choice{sort: byLease, limit: 3}).collection()
	began := time.Now()
	for n, i := range rand.Perm(20_000) { // the later it is read, the shorter its remaining lease
		at := time.Duration(n) * time.Second
		require.NoError(t, kept.add(&inspect.Lock{
			Name: fmt.Sprint(i), Holders: make([]inspect.Holder, 1), At: began.Add(at), TTL: 10*time.Hour + time.Duration(i)*time.Second - at,
		}))
		require.LessOrEqual(t, len(kept.locks), leastKept)
	}
	require.Equal(t, 20_000, kept.total)
	var names []string
	for _, l := range kept.first() {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"0", "1", "2"}, names)
	require.Equal(t, 1, ends(&inspect.Lock{Holders: make([]inspect.Holder, 1), TTL: redlatch.NoTTL}).Compare(began.Add(math.MaxInt64)))
}

func TestCountOfOneIsSingular(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 of 1 waiter has no subscriber", absentOf(1, 1))
	require.Equal(t, "1 of 2 waiters has no subscriber", absentOf(1, 2))
	require.Equal(t, "2 of 2 waiters have no subscriber", absentOf(2, 2))
}

func TestListReadsFrontOfLongQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const waiting = inspect.LookedAt + 500
	program.LongQueue(t, s, "billing-run", program.RedissonOwner, waiting)
	longest := program.WatchReads(t, s, waiting)
	asJSON := program.Start(t, s.URL(), "list", "--dead-waiters", "--json")
	require.Contains(t, program.OK(t, s.URL(), "list", "--dead-waiters"), "  dead   10000 of the first 10000 of 10500 waiters have no subscriber\n")
	got := asJSON.Outcome(program.Soon)
	require.LessOrEqual(t, longest(), 400, "200 places and their deadlines")
	require.Contains(t, got.Stdout, `"queue_length":10500,"not_subscribed":10000,"not_looked_at":500,`)
}

func TestQueuesAreReadInChunks(t *testing.T) {
	t.Parallel()
	var locks []*inspect.Lock
	for range 25 {
		locks = append(locks, &inspect.Lock{Queue: 1_000_000})
	}
	require.Equal(t, 10, together(locks), "10,000 of each")
	require.Equal(t, 5, together(locks[20:]))
	require.Equal(t, 1, together(locks[:1]))
}

func TestListDeadWaitersSkipsUnreadableLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	program.Enqueue(t, s, "dead", program.RedissonOwner, time.Hour)
	s.Do(t, "RPUSH", codec.QueueKey("odd"), program.RedissonOwner)
	s.Do(t, "SET", codec.TimeoutKey("odd"), "text")
	got := program.Finish(t, s.URL(), "list", "--dead-waiters")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "  dead   1 of 1 waiter has no subscriber\n")
	program.OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, `"odd"`)
}
