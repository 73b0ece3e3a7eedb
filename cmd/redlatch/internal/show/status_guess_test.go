package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// ranAgo describes a client with an idle connection and one whose last command ran idle seconds ago.
func ranAgo(addr, name, cmd string, idle int) string {
	const line = "id=7 addr=%s laddr=10.0.0.1:6379 fd=8 name=%s age=90 idle=%d flags=N db=0 cmd=%s user=default resp=2 lib-name= lib-ver=\n"
	return fmt.Sprintf(line, addr, name, 25, "ping") + fmt.Sprintf(line, addr, name, idle, cmd)
}

func TestGuessNeedsSingleFittingClient(t *testing.T) {
	t.Parallel()
	orders := ranAgo("10.0.0.5:40001", "orders", "evalsha", 4)
	for what, c := range map[string]struct {
		list string
		want *guess
	}{
		"no client":           {"", nil},
		"one client":          {orders, &guess{"10.0.0.5", "orders"}},
		"without a name":      {ranAgo("10.0.0.5:1", "", "eval", 4), &guess{Address: "10.0.0.5"}},
		"with replicas":       {ranAgo("10.0.0.5:1", "", "wait", 4), &guess{Address: "10.0.0.5"}},
		"two connections":     {orders + strings.ReplaceAll(orders, ":40001", ":40002"), &guess{"10.0.0.5", "orders"}},
		"two addresses":       {orders + ranAgo("10.0.0.6:40001", "orders", "evalsha", 5), nil},
		"two names":           {orders + ranAgo("10.0.0.5:40001", "bills", "eval", 3), nil},
		"another ran earlier": {orders + ranAgo("10.0.0.6:1", "", "evalsha", 6), &guess{"10.0.0.5", "orders"}},
		"another ran later":   {orders + ranAgo("10.0.0.6:1", "", "evalsha", 2), &guess{"10.0.0.5", "orders"}},
		"another command":     {ranAgo("10.0.0.5:40001", "orders", "hget", 4), nil},
		"too late":            {ranAgo("10.0.0.5:40001", "orders", "evalsha", 6), nil},
		"too early":           {ranAgo("10.0.0.5:40001", "orders", "evalsha", 2), nil},
		"IPv6":                {ranAgo("[2001:db8::5]:40001", "orders", "evalsha", 4), &guess{"2001:db8::5", "orders"}},
		"socket":              {ranAgo("/run/redis.sock:0", "orders", "evalsha", 4), &guess{"/run/redis.sock", "orders"}},
		"odd address":         {ranAgo("a:b:c", "orders", "evalsha", 4), &guess{"a:b:c", "orders"}},
		"quotes":              {ranAgo("10.0.0.5:1", `"a\x1b=b`, "evalsha", 4), &guess{"10.0.0.5", `"a\x1b=b`}},
		"missing fields":      {strings.ReplaceAll(orders, "idle=4 ", "") + "addr=10.0.0.6:1 cmd=evalsha\n\nidle=4 cmd=eval\nx\n", nil},
		"odd idle time":       {strings.ReplaceAll(orders, "idle=4", "idle=4x"), nil},
		"huge idle time":      {strings.ReplaceAll(orders, "idle=4", "idle=99999999999999999999"), nil},
		"other library":       {strings.ReplaceAll(orders, "lib-name=", "lib-name=go-redis(,go1.25)"), nil},
		"named library":       {strings.ReplaceAll(orders, "lib-name=", "lib-name=Redisson"), &guess{"10.0.0.5", "orders"}},
		"old server":          {strings.ReplaceAll(orders, " lib-name= lib-ver=", ""), &guess{"10.0.0.5", "orders"}},
		"Redlatch client":     {orders + strings.SplitAfter(ranAgo("10.0.0.6:1", "", "evalsha", 4), "\n")[1], &guess{"10.0.0.5", "orders"}},
	} {
		require.Equal(t, c.want, guessFrom(c.list, 4*time.Second, 4*time.Second), what)
	}
	for idle, fits := range []bool{false, false, true, true, true, true, false} {
		got := guessFrom(ranAgo("10.0.0.5:1", "", "eval", idle), 2950*time.Millisecond, 4050*time.Millisecond)
		require.Equal(t, fits, got != nil, "idle for %d s", idle)
	}
}

func TestGuessEscapesHostileName(t *testing.T) {
	t.Parallel()
	g := guessFrom(ranAgo("10.0.0.5\x1b:1", "\x1b[2J\"\xff\u202e", "evalsha", 4), 4*time.Second, 4*time.Second)
	require.Equal(t, `probably a connection of "10.0.0.5\x1b", name "\x1b[2J\"\xff\u202e", if the holder is alive: its last script ran when the lease was last set`, g.String())
	s := status{ClientGuess: g}
	s.Held = true
	var out strings.Builder
	s.print(&out)
	require.NotContains(t, out.String(), "\x1b")
	require.Contains(t, program.Words(out.String()), " guess probably a connection of ")
	program.Narrow(t, out.String())
	text, err := json.Marshal(g)
	require.NoError(t, err)
	require.NotContains(t, string(text), "\x1b")
	g.Name = strings.Repeat("x", 1000)
	require.Less(t, len(g.String()), 250)
}

// redissonAt opens two connections with a name, and returns a function that sets the lease of a lock with a script.
func redissonAt(t *testing.T, s *redistest.Server, as string) func(name, owner string, lease time.Duration) {
	t.Helper()
	c := s.Dial(t)
	for _, c := range []redis.Conn{s.Dial(t), c} {
		_, err := c.Do("CLIENT", "SETNAME", as)
		require.NoError(t, err)
	}
	return func(name, owner string, lease time.Duration) {
		const script = `redis.call('hset', KEYS[1], ARGV[1], 1) return redis.call('pexpire', KEYS[1], ARGV[2])`
		_, err := c.Do("EVAL", script, 1, name, owner, lease.Milliseconds())
		require.NoError(t, err)
	}
}

func TestStatusGuessesRedissonClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	acquire := redissonAt(t, s, `ord"ers`)
	guessed := func(url, name string) bool { return strings.Contains(program.OK(t, url, "status", name), "guess") }
	require.Eventually(t, func() bool {
		acquire("job", program.RedissonOwner, redissonLease)
		return strings.Contains(program.OK(t, s.URL(), "status", "job"),
			"  guess  probably a connection of 127.0.0.1, name \"ord\\\"ers\", if the holder is alive: its last script ran when the lease was last set\n")
	}, program.Soon, program.PollEvery)
	require.Eventually(t, func() bool {
		acquire("job", program.RedissonOwner, redissonLease)
		return strings.Contains(program.OK(t, s.URL(), "status", "-o", "yaml", "job"),
			"\nclient_guess:\n  address: \"127.0.0.1\"\n  name: \"ord\\\"ers\"\n")
	}, program.Soon, program.PollEvery)
	for what, args := range map[string][]string{"list": {"list", "job"}, "wide": {"status", "-o", "wide", "job"}, "name": {"status", "-o", "name", "job"}} {
		require.NotContains(t, program.OK(t, s.URL(), args...), "guess", what)
	}
	acquire("ours", program.SomeOwner, redissonLease)
	require.False(t, guessed(s.URL(), "ours"), "the label of a Redlatch client is certain")
	acquire("long", program.RedissonOwner, time.Hour)
	require.False(t, guessed(s.URL(), "long"), "it is unknown when a lease of another length was set")
	acquire("short", program.RedissonOwner, 15*time.Second)
	require.False(t, guessed(s.URL(), "short"), "no watchdog's lease becomes so short")
	acquire("two", program.RedissonOwner, redissonLease)
	s.Do(t, "HSET", "two", otherThread, 1, "mode", "read")
	require.False(t, guessed(s.URL(), "two"), "either may have set the lease")
	url := s.GiveLooks(t)
	acquire("app:job", program.RedissonOwner, redissonLease)
	got := program.Finish(t, url, "status", "app:job")
	require.Equal(t, program.Outcome{Stdout: got.Stdout}, got)
	require.NotContains(t, got.Stdout, "guess", "the user may not run CLIENT LIST")
	s.Do(t, "ACL", "SETUSER", "onlooker", "+client|list")
	require.Eventually(t, func() bool {
		acquire("app:job", program.RedissonOwner, redissonLease)
		return guessed(url, "app:job")
	}, program.Soon, program.PollEvery)
}

func TestStatusGuessesClientOfClusterNode(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	for _, name := range []string{"a", "b", "c"} {
		acquire := redissonAt(t, c.Owner(t, name), "at-"+name)
		require.Eventually(t, func() bool {
			acquire(name, program.RedissonOwner, redissonLease)
			return strings.Contains(program.OK(t, "redis-cluster://"+c.Addrs()[0], "status", name), `127.0.0.1, name "at-`+name+`"`)
		}, program.Soon, program.PollEvery)
	}
}
