package force

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

func TestUnlockWithoutForceOnlyExplains(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedissonOwner, time.Minute)
	program.Fails(t, s.URL(), 2, "--force releases the lock of a dead holder", "unlock", name)
	require.True(t, program.Exists(t, s, name))
}

func TestUnlockKeepsRenewedLock(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name, owner := program.HeldBy(t, s, program.RedlatchOwner, time.Minute), program.RedlatchOwner
		renewed(t, s, name)
		for _, more := range [][]string{nil, {"--dead", owner}} {
			got := program.Finish(t, s.URL(), append([]string{"unlock", "--force", name}, more...)...)
			require.Equal(t, 2, got.Code, got.Stderr)
			program.OneLine(t, afterLook(t, got.Stderr, `[12]\ds`, name))
			require.Contains(t, got.Stderr, "its holder is alive, its lease was renewed just now")
			require.Regexp(t, `  owner  `+owner+`   count 1\n         Redlatch since \S+Z\n  lease  \S+ left, renewed\n$`, got.Stdout)
			program.Narrow(t, strings.TrimPrefix(got.Stdout, "lock \""+name))
		}
	})
}

// renewed keeps renewing the lease of a lock, so that each look sees a renewal.
func renewed(t *testing.T, s redistest.Target, name string) {
	t.Helper()
	conn, stop := s.Dial(t), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			_, _ = conn.Do("PEXPIRE", name, time.Minute.Milliseconds())
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// afterLook returns text after the line that announces the look. limit is a pattern.
func afterLook(t *testing.T, text, limit, name string) string {
	t.Helper()
	look, rest, _ := strings.Cut(text, "\n")
	require.Regexp(t, "^redlatch: waiting up to "+limit+` for a renewal of the lease of lock "`+regexp.QuoteMeta(name)+`"$`, look)
	return rest
}

func TestUnlockHidesShortObservation(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
	got := program.Finish(t, s.URL(), "unlock", "--force", "--for", "100ms", name)
	require.Equal(t, 2, got.Code)
	program.OneLine(t, got.Stderr)
	s.Do(t, "PERSIST", name)
	program.Fails(t, s.URL(), 2, "the lock does not have a lease to renew", "unlock", "--force", name)
}

func TestUnlockReleasesHolderDeclaredDead(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
	unlock := []string{"unlock", "--force", "--for", "10ms", name}
	program.Fails(t, s.URL(), 2, "If you are sure that it is dead: --dead "+program.RedissonOwner, unlock...)
	program.Fails(t, s.URL(), 2, "is not held by "+program.RedlatchOwner, append(unlock, "--dead", program.RedlatchOwner)...)
	require.True(t, program.Exists(t, s, name))

	got := program.Finish(t, s.URL(), append(unlock, "--dead", program.RedissonOwner, "--reason", "host\nis gone")...)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "  taken  no waiter was notified: no connection of the master is subscribed to\n")
	require.Contains(t, got.Stdout, "lock \""+name+"\" was released for its holder\n")
	require.Contains(t, got.Stdout, "\n  now    free\n")
	program.OneLine(t, got.Stderr)
	require.Regexp(t, `^redlatch: audit: \S+Z \S+.*@\S+ took lock "`+name+`" on redis://127.0.0.1:\d+ from `+program.RedissonOwner+
		` \(Redisson, count 1\), lease \S+ left, fixed or renewed; reason "host\\nis gone"\n$`, got.Stderr)
	require.False(t, program.Exists(t, s, name))
	require.Equal(t, program.Outcome{Code: 3, Stdout: "lock \"" + name + "\" is free\n", Stderr: ""}, program.Finish(t, s.URL(), unlock...))
}

func TestLeaseTextShowsRenewal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "none: held until released", leaseText(&repair.Forced{}))
	left := int64(90_000)
	for want, f := range map[string]*repair.Forced{
		"1m30s left":          {Mode: protocol.ModeRead, Renewed: inspect.RenewedYes},
		"1m30s left, renewed": {Renewed: inspect.RenewedYes},
		"1m30s left, not renewed when it was due": {Renewed: inspect.RenewedNo},
		"1m30s left, fixed or renewed":            {Renewed: inspect.RenewedUnknown},
	} {
		f.TTLMillis = &left
		require.Equal(t, want, leaseText(f))
	}
}

func TestForcedUnlockReleasesImmediatelyAndNotifiesWaiters(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, fair := range []string{"--fair=false", "--fair"} {
		name := program.HeldBy(t, s, program.RedlatchOwner, time.Hour)
		next := program.Start(t, s.URL(), "run", fair, name, "--", "echo", "in")
		awaitListener(t, s, name)
		got := program.Finish(t, s.URL(), "unlock", "--force", "--even-if-alive", "--json", name)
		require.Equal(t, 0, got.Code, got.Stderr)
		require.Equal(t, "in", next.Line())
		reported := program.JSON(t, got.Stdout)
		require.Equal(t, true, reported["taken"])
		require.Contains(t, reported, "now")
		require.Equal(t, inspect.RenewedUnknown, reported["renewed"])
		holder := reported["holders"].([]any)[0].(map[string]any)
		require.Equal(t, program.RedlatchOwner, holder["owner"])
		require.Equal(t, "redlatch", holder["client"])
		require.Contains(t, got.Stderr, "no reason given")
	}
}

func TestUnlockNotifiesFirstFairWaiter(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedlatchOwner, time.Hour)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	c := program.Subscribe(t, s, protocol.OwnerChannel(name, program.RedissonOwner))
	out := program.OK(t, s.URL(), "unlock", "--force", "--even-if-alive", name)
	require.Contains(t, out, "  queue  1 waiting\n")
	require.Contains(t, out, "  taken  the first waiter whose deadline has not passed was notified\n")
	message, err := redis.Strings(redis.ReceiveWithTimeout(c, program.Soon))
	require.NoError(t, err)
	require.Equal(t, []string{"message", protocol.OwnerChannel(name, program.RedissonOwner), "0"}, message)
}

func TestUnlockReportsDeadWaiterAsNotNotified(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedlatchOwner, time.Hour)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	out := program.OK(t, s.URL(), "unlock", "--force", "--even-if-alive", name)
	require.Contains(t, program.Words(out), "taken no waiter was notified: no connection is subscribed for the first waiter, "+
		program.RedissonOwner+". If it is dead, `redlatch evict "+name+" "+program.RedissonOwner+"` removes it from the queue, and `redlatch evict --all-dead "+
		name+"` removes all dead waiters")

	for subscribers, channel := range []string{"", codec.LockChannel(name)} {
		s.Do(t, "HSET", name, program.RedlatchOwner, 1)
		s.Do(t, "DEL", codec.QueueKey(name))
		if channel != "" {
			program.Subscribe(t, s, channel)
		}
		reported := program.JSON(t, program.OK(t, s.URL(), "unlock", "--force", "--even-if-alive", "--json", name))
		require.Equal(t, "all", reported["notified"])
		require.InDelta(t, subscribers, reported["subscribers"], 0)
	}
}

func awaitListener(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, channel := range s.Channels(t) {
			if strings.HasPrefix(channel, codec.LockChannel(name)) {
				return true
			}
		}
		return false
	}, program.Soon, program.PollEvery)
}

func TestUnlockAppendsAuditToFile(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	file, began := filepath.Join(t.TempDir(), "audit.jsonl"), time.Now().Truncate(time.Second)
	for lines := 1; lines <= 2; lines++ {
		name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
		program.OK(t, s.URL(), "unlock", "--force", "--even-if-alive", "--reason", "why", "--audit-file", file, name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Len(t, all, lines)
		reported := program.JSON(t, all[lines-1])
		for field, want := range map[string]any{
			"name": name, "reason": "why", "outcome": "taken", "even_if_alive": true, "server": "redis://" + s.Addr(), "action": "unlock --force",
		} {
			require.Equal(t, want, reported[field], field)
		}
		require.NotEmpty(t, reported["by"])
		require.NotEmpty(t, reported["host"])
		require.Equal(t, program.RedissonOwner, reported["holders"].([]any)[0].(map[string]any)["owner"])
		at, err := time.Parse(time.RFC3339, reported["time"].(string))
		require.NoError(t, err)
		require.False(t, at.Before(began) || at.After(time.Now()), "%v", at)
	}
	name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
	program.Fails(t, s.URL(), 1, "nothing was done", "unlock", "--force", "--even-if-alive", "--audit-file", "/no/such/dir/file", name)
	require.True(t, program.Exists(t, s, name), "it was taken without an audit")
}

func TestUnlockRejectsUndeterminedState(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	eternal, readers, long := redistest.Key(t), redistest.Key(t), program.HeldBy(t, s, program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", eternal, program.RedissonOwner, 1)
	s.Do(t, "HSET", readers, "mode", "read", program.RedissonOwner, 1, program.RedlatchOwner, 1)
	s.Do(t, "SET", readKey(readers, program.RedlatchOwner), 1)
	few := []string{"--owner", program.RedlatchOwner, "--dead", program.RedissonOwner}
	for _, c := range []struct {
		name  string
		flags []string
		code  int
		says  string
	}{
		{eternal, nil, 2, "the lock does not have a lease to renew"},
		{readers, few, 2, "its holder " + program.RedlatchOwner + " is not known to be dead: the lock does not have a lease to renew. " +
			"If you are sure that it is dead: --dead " + program.RedlatchOwner},
		{long, []string{"--for", "1s"}, 2, "it was not watched long enough to see a renewal"},
		{long, []string{"--for", "0s"}, 2, "--for"},
		{long, []string{"--dead", program.RedissonOwner, "--even-if-alive"}, 2, "mutually exclusive"},
		{"", nil, 2, "name"},
	} {
		program.Fails(t, s.URL(), c.code, c.says, append(append([]string{"unlock", "--force"}, c.flags...), c.name)...)
	}
	for _, name := range []string{eternal, readers, long} {
		require.True(t, program.Exists(t, s, name))
	}
}

func TestUnlockReleasesReadWriteLockInEitherMode(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, c := range []struct {
		fields []any
		flag   string
	}{
		{[]any{"mode", "read", program.RedissonOwner, 1}, program.RedissonOwner},
		{[]any{"mode", "write", program.RedissonOwner + ":write", 1, program.RedissonOwner, 1}, program.RedissonOwner + ":write"},
	} {
		name := redistest.Key(t)
		s.Do(t, "HSET", append([]any{name}, c.fields...)...)
		s.Do(t, "PEXPIRE", name, 3_000_000)
		next := program.Start(t, s.URL(), "run", "--write", name, "--", "echo", "in")
		program.AwaitSubscribers(t, s, protocol.ReadWriteChannel(name), 1)
		require.Contains(t, program.OK(t, s.URL(), "unlock", "--force", "--for", "1s", "--dead", c.flag, name), "  taken  all waiters were notified\n")
		require.Equal(t, "in", next.Line())
	}
}

func TestUnlockReleasesReadersDeclaredDead(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name, over := redistest.Key(t), "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:99"
	s.Do(t, "HSET", name, "mode", "read", program.RedissonOwner, 1, program.RedlatchOwner, 1, over, 1)
	s.Do(t, "PEXPIRE", name, 3_000_000)
	for _, owner := range []string{program.RedissonOwner, program.RedlatchOwner} {
		s.Do(t, "SET", readKey(name, owner), 1, "PX", 2_000_000)
	}
	for _, c := range []struct {
		dead []string
		says string
	}{
		{nil, "its holders are not known to be dead: it was not watched long enough to see a renewal. " +
			"If you are sure that they are dead: --dead " + program.RedissonOwner + " --dead " + program.RedlatchOwner + ". --even"},
		{[]string{"a:1", "b:1"}, "is not held by a:1 or b:1\n"},
	} {
		args := []string{"unlock", "--force", "--for", "1s", name}
		for _, owner := range c.dead {
			args = append(args, "--dead", owner)
		}
		program.Fails(t, s.URL(), 2, c.says, args...)
		require.True(t, program.Exists(t, s, name))
	}
	got := program.Finish(t, s.URL(), "unlock", "--force", "--for", "1s", "--dead", program.RedlatchOwner, "--dead", program.RedissonOwner, name)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "\n  kind   read/write, held for reading\n")
	require.Regexp(t, "Redisson, reads, 33m\\S+s left\n", got.Stdout)
	require.Contains(t, got.Stdout, "\n  others 0, and 1 with expired leases\n")
	require.Regexp(t, `from .*`+program.RedissonOwner+` \(Redisson, reads, 33m\S+s left, count 1\)`, got.Stderr)
	require.False(t, program.Exists(t, s, name))
}

func TestUnlockNeedsHolderAfterAllReadLeasesExpired(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "HSET", name, "mode", "read", program.RedissonOwner, 1, program.RedlatchOwner, 1)
	s.Do(t, "PEXPIRE", name, 3_000_000)
	got := program.Fails(t, s.URL(), 2, "If you are sure that it is dead: --dead "+program.RedissonOwner+". --even", "unlock", "--force", "--for", "1s", "--json", name)
	reported := program.JSON(t, got.Stdout)
	require.Equal(t, "readwrite", reported["kind"])
	require.Equal(t, "not_known_dead", reported["refused"])
	require.Equal(t, false, reported["taken"])
	require.Equal(t, "read", reported["mode"])
	holder := reported["holders"].([]any)[0].(map[string]any)
	require.Equal(t, "read", holder["mode"])
	require.InDelta(t, 0, holder["left_ms"], 0)
	program.OK(t, s.URL(), "unlock", "--force", "--for", "1s", "--dead", program.RedlatchOwner, name)
}

func readKey(name, owner string) string { return "{" + name + "}:" + owner + ":rwlock_timeout:1" }

func TestUnlockWritesAuditDespiteSignal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	far := redistest.NewProxy(t, s.Addr())
	far.Latency(redistest.ToClient, 300*time.Millisecond)
	type unlocking struct {
		name, file string
		p          *program.Process
	}
	all := map[syscall.Signal]unlocking{}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		u := unlocking{name: program.HeldBy(t, s, program.RedissonOwner, time.Hour), file: filepath.Join(t.TempDir(), "audit.jsonl")}
		u.p = program.Start(t, far.URL(), "unlock", "--force", "--even-if-alive", "--yes", "--audit-file", u.file, u.name)
		all[sig] = u
	}
	held := maps.Clone(all)
	require.Eventually(t, func() bool {
		for sig, u := range held {
			if !program.Exists(t, s, u.name) {
				assert.NoError(t, u.p.Cmd.Process.Signal(sig))
				delete(held, sig)
			}
		}
		return len(held) == 0
	}, program.Soon, 20*time.Millisecond)
	for _, u := range all {
		got := u.p.Outcome(program.Soon)
		require.Equal(t, 0, got.Code)
		require.Contains(t, got.Stderr, "took lock ")
		line, err := os.ReadFile(u.file)
		require.NoError(t, err)
		require.Contains(t, string(line), `"outcome":"taken"`)
	}
}
