package hold

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func TestRunNamesMissingRight(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			url := s.GiveRights(t, []string{"Plain locks"}, "-hincrby")
			got := program.Finish(t, url, "run", "--try", "app:job", "--", "echo", "in")
			require.Equal(t, 125, got.Code)
			require.Empty(t, got.Stdout)
			program.OneLine(t, got.Stderr)
			require.Regexp(t, ` rejected the request: (ERR|NOPERM) `, got.Stderr)
			require.Contains(t, got.Stderr, ". The user lacks +hincrby. `redlatch doctor --prefix 'app:job'` shows the missing rights; "+
				"docs/operations.md explains them.\n")
			require.NotContains(t, got.Stderr, "@user_script", "where in a script")

			s.Do(t, "ACL", "SETUSER", "locks", "+hincrby")
			program.Fails(t, url, 125, "The user lacks ~other:job* ~redisson_lock__channel:{other:job* &redisson_lock__channel:{other:job*. `redlatch doctor --prefix 'other:job'`", "run", "--try", "other:job", "--", "echo", "in")

			for word, lacks := range map[string]string{"-publish": "+publish", "resetchannels": "&redisson_lock__channel:{app:job*"} {
				s.Do(t, "ACL", "SETUSER", "locks", word)
				require.Empty(t, program.Fails(t, url, 125, "The user lacks "+lacks+". `redlatch doctor --prefix 'app:job'`", "run", "--try", "app:job", "--", "echo", "in").Stdout)
				s.Do(t, "ACL", "SETUSER", "locks", "+publish", "&redisson_lock__channel:{app:*")
			}

			p := program.Start(t, url, "run", "--try", "app:job", "--", "sh", "-c", "echo in; read x; exit 7")
			require.Equal(t, "in", p.Line())
			s.Do(t, "ACL", "SETUSER", "locks", "-publish")
			require.NoError(t, p.Stdin.Close())
			got = p.Outcome(2 * program.Soon)
			require.Equal(t, 7, got.Code)
			require.Regexp(t, `lock "app:job" was released, but its waiters were not notified and will find it free at their next poll: (ERR|NOPERM) `, got.Stderr)
			require.False(t, program.Exists(t, s, "app:job"))
			require.Contains(t, got.Stderr, "The user lacks +publish. `redlatch doctor --prefix 'app:job'`")
		})
	}
}

func TestRunReportsTypeOfForeignKey(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "RPUSH", "app:list", "text")
	s.Do(t, "SET", codec.QueueKey("app:job"), "text")
	s.Do(t, "HSET", "app:user", "name", "bob")
	s.Do(t, "HSET", "app:held", program.SomeOwner, 1)
	blind := s.GiveRights(t, []string{"Plain locks"})
	for _, c := range []struct {
		url, name string
		flags     []string
		code      int
		says      string
	}{
		{s.URL(), "app:list", []string{"--fair"}, 125, `the key "app:list" holds a list, and a lock is a hash: another program uses this name`},
		{s.URL(), "app:job", []string{"--fair"}, 125, `the key "redisson_lock_queue:{app:job}" holds a string, and the queue of a fair lock is a list: another program uses this name`},
		{blind, "app:list", []string{""}, 125, `the key "app:list", or a key of its queue, is not a Redisson lock: another program uses this name. This user may not query the key's type (+type)`},
		{blind, "app:user", []string{""}, 125, `lock "app:user": wrong kind of key: a hash with the field "name", which is not an owner`},
		{blind, "app:held", []string{"--wait 1s"}, 124, `lock "app:held" is held by ` + program.SomeOwner + ` without a lease, until released`},
		{
			s.URL(), "app:user", []string{"", "--fair", "--try", "--wait 1ms", "--wait 1h", "--fair --wait 1h", "--fair --try", "--write", "--read --try"},
			125, `"app:user" is a hash but not a lock: its field "name" is not an owner`,
		},
	} {
		for _, flags := range c.flags {
			args := append(append([]string{"run"}, strings.Fields(flags)...), c.name, "--", "echo", "in")
			got := program.Fails(t, c.url, c.code, c.says, args...)
			require.Equal(t, program.Outcome{Code: c.code, Stderr: "redlatch: " + c.says + "\n"}, got, args)
		}
	}
	require.EqualValues(t, 4, s.Do(t, "DBSIZE"), "a queue is left")
}

func TestWaitBoundsConnecting(t *testing.T) {
	t.Parallel()
	for want, o := range map[time.Duration]*lockFlags{
		leastConnect: {try: true}, time.Hour: {bounded: true, wait: time.Hour}, 0: {}, leastConnect + 1: {try: true, wait: leastConnect + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := o.connecting(t.Context())
			defer stop()
			at, bounded := ctx.Deadline()
			require.Equal(t, want > 0, bounded)
			require.True(t, !bounded || time.Until(at) == want)
		})
	}
}

func TestRunReportsFrozenServer(t *testing.T) {
	testlevel.All(t, "a connection attempt lasts two seconds; TestWaitBoundsConnecting uses fake time")
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	defer s.Resume()
	got := program.Fails(t, s.URL(), 125, " accepts connections, but does not answer in time: ", "run", "--wait", "0s", "job", "--", "echo", "in")
	require.NotContains(t, got.Stderr, "Start one")
}

func ttl(t *testing.T, s redistest.Target, name string) time.Duration {
	t.Helper()
	ms, ok := s.Do(t, "PTTL", name).(int64)
	require.True(t, ok)
	return max(0, time.Duration(ms)*time.Millisecond)
}

func TestAtLeastNeedsPlainRightsOnly(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			url := s.GiveRights(t, []string{"Plain locks"})
			got := program.Finish(t, url, "run", "--at-least", "1h", "app:job", "--", "true")
			require.Equal(t, program.Outcome{}, got)
			require.Greater(t, ttl(t, s, "app:job"), 30*time.Minute)
		})
	}
}

// At the end of --wait, the last attempt may not have been sent yet.
func TestWaitTimeoutOnReplicaIsReported(t *testing.T) {
	testlevel.All(t, "a replica has three seconds to become the master")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	for url, says := range map[string]string{replica.URL(): "is a replica of " + master.Addr(), master.URL(): "not sent"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			srv, err := connect.New(connect.Settings{Address: url})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), replicaAfter) // longer than lookAfter
			defer cancel()
			err = (&lockFlags{}).whileLooking(ctx, srv, "job", func(ctx context.Context) error {
				<-ctx.Done()
				return redlatch.ErrNotSent
			})
			require.ErrorContains(t, err, says)
		})
	}
}

func TestMissingRightsAreListedInFixedOrder(t *testing.T) {
	t.Parallel()
	o := lockFlags{fair: true, fenced: true, write: true, permits: "crawl:5", atLeast: 1}
	require.Equal(t, []string{acl.Plain, acl.Fair, acl.Tokens, acl.Semaphores, acl.ReadWrite}, o.needs())
}
