package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// These tests hold a command back in the network until its connection has been replaced.

// settled is logged when a call in doubt was resolved.
const settled = "open outcome settled"

// noFence are the rights of a user who cannot kill connections.
var noFence = []any{"on", "nopass", "~*", "&*", "+@all", "-client|kill", "-client|id", "-client|info", "-client|list"}

// delayingNet is a server behind a proxy that still delivers held commands after the client has
// closed the connection.
func delayingNet(t *testing.T) (*redistest.Server, *redistest.Proxy) {
	t.Helper()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	p.KeepHalfDead(true)
	return s, p
}

func wakeUps(t *testing.T, s *redistest.Server, key string) func() int {
	t.Helper()
	conn := redis.PubSubConn{Conn: s.Dial(t)}
	require.NoError(t, conn.Subscribe(codec.LockChannel(key)))
	_, isAck := conn.Receive().(redis.Subscription)
	require.True(t, isAck)
	n, marks := 0, 0
	return func() int {
		t.Helper()
		// All messages before this one have arrived.
		marks++
		s.Do(t, "PUBLISH", codec.LockChannel(key), "mark")
		for {
			m, ok := conn.ReceiveWithTimeout(soon).(redis.Message)
			require.True(t, ok)
			if string(m.Data) == "mark" {
				return n
			}
			require.Equal(t, codec.MessageUnlock, string(m.Data))
			n++
		}
	}
}

// giveUp is a way in which a client leaves a connection.
type giveUp struct {
	name string
	wait time.Duration // 0: no bound
	act  func(p *redistest.Proxy)
}

var giveUps = []giveUp{
	{"reset", 0, func(p *redistest.Proxy) { p.Reset() }},
	{"reply limit", 0, func(*redistest.Proxy) {}},
	{"reset after the caller left", time.Second, func(p *redistest.Proxy) { p.Reset() }},
}

// loseAcquire acquires a lock with a command that the network holds back, until the call fails.
func (g giveUp) loseAcquire(t *testing.T, p *redistest.Proxy, l *rlock.Lock) *redistest.Held {
	t.Helper()
	ctx := t.Context()
	if g.wait > 0 {
		bounded, cancel := context.WithTimeout(ctx, g.wait)
		defer cancel()
		ctx = bounded
	}
	held := p.HoldMatching(redistest.ToServer, l.Name())
	w := await(ctx, l)
	awaitClosed(t, held.Seen(), soon, "the acquire")
	if g.wait > 0 {
		require.ErrorIs(t, w.failed(t, atOnce), context.DeadlineExceeded)
	}
	g.act(p)
	require.ErrorIs(t, w.failed(t, atOnce+time.Second), redlatch.ErrUncertain)
	return held
}

func shortReplyLimit() redlatch.Option { return redlatch.WithCommandTimeout(2 * time.Second) }

func TestU5InDoubtAcquireNeverRunsWhenItsConnectionCanBeKilled(t *testing.T) {
	t.Parallel()
	for _, how := range giveUps {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			s, p := delayingNet(t)
			logged, log := newJournal()
			client := connect(t, p.URL(), log, shortReplyLimit())
			loadScripts(t, connect(t, s.URL()))
			before, key := grants(t, s), redistest.Key(t)

			held := how.loseAcquire(t, p, rlock.New(client, key))
			logged.await(t, 1, settled, key)
			require.Positive(t, s.CommandStats(t)["client|kill"])

			held.Release()
			until(t, soon, "delivery", func() bool { return p.Holding(redistest.ToServer) == 0 })
			loadScripts(t, connect(t, p.URL()))
			require.False(t, locked(t, s, key))
			require.Equal(t, before+1, grants(t, s), "the in-doubt call ran")
		})
	}
}

func TestU5InDoubtAcquireIsFoundAndReleasedWhereNoConnectionCanBeKilled(t *testing.T) {
	t.Parallel()
	for _, how := range giveUps {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			s, p := delayingNet(t)
			s.Do(t, "ACL", append([]any{"SETUSER", "weak"}, noFence...)...)
			logged, log := newJournal()
			client := connect(t, "redis://weak:any@"+p.Addr(), log, shortReplyLimit())
			loadScripts(t, connect(t, s.URL()))
			before, key := grants(t, s), redistest.Key(t)
			messages := wakeUps(t, s, key)

			held := how.loseAcquire(t, p, rlock.New(client, key))

			asked := s.CommandStats(t)["hget"]
			until(t, soon, "two questions", func() bool { return s.CommandStats(t)["hget"] >= asked+2 })
			require.Zero(t, logged.count(settled, key))
			require.Zero(t, messages())

			held.Release()
			logged.await(t, 1, settled, key, "was_held=true")
			require.Equal(t, before+1, grants(t, s), "the in-doubt call did not run: the test shows nothing")
			require.False(t, locked(t, s, key))
			require.Equal(t, 1, messages(), "waiters learn that it is free")
		})
	}
}

// The next attempt has another owner, and only one is granted.
func TestU5InDoubtAcquireDoesNotKeepItsOwnCallerOut(t *testing.T) {
	t.Parallel()
	for name, inDoubtFirst := range map[string]bool{"the in-doubt call is first": true, "the caller is first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meetInDoubtCall(t, inDoubtFirst)
		})
	}
}

func meetInDoubtCall(t *testing.T, inDoubtFirst bool) {
	t.Helper()
	s, p := delayingNet(t)
	s.Do(t, "ACL", append([]any{"SETUSER", "weak"}, noFence...)...)
	client := connect(t, "redis://weak:any@"+p.Addr(), shortReplyLimit(), noPoll())
	loadScripts(t, connect(t, s.URL()))
	key := redistest.Key(t)
	holdByHand(t, s, key, forever)
	w := await(t.Context(), rlock.New(client, key))
	awaitWaiters(t, s, key)

	held := p.HoldMatching(redistest.ToServer, "EVALSHA")
	s.Do(t, "PUBLISH", codec.LockChannel(key), codec.MessageUnlock) // a reason to try
	awaitClosed(t, held.Seen(), soon, "the acquire")
	p.Reset()
	asked := s.CommandStats(t)["pttl"]
	until(t, soon, "another attempt", func() bool { return s.CommandStats(t)["pttl"] > asked })
	s.Do(t, "DEL", key) // and no message wakes the waiter
	if !inDoubtFirst {
		s.Do(t, "PUBLISH", codec.LockChannel(key), codec.MessageUnlock)
		w.ended(t, soon)
	}
	held.Release()

	hold := w.acquired(t, soon)
	if !inDoubtFirst {
		asked := s.CommandStats(t)["hget"]
		until(t, soon, "two questions", func() bool { return s.CommandStats(t)["hget"] >= asked+2 })
		until(t, soon, "delivery", func() bool { return p.Holding(redistest.ToServer) == 0 })
	}
	require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, s, key))
	require.NoError(t, hold.Unlock())
	until(t, soon, "the lock is free", func() bool { return !locked(t, s, key) })
}

const shortLease = 6 * time.Second

// reportedLease is lost a second before it ends, which covers delays of a busy machine.
const reportedLease = 12 * time.Second

// A frozen server may run an acquire after its lease.
func TestU5AcquireThatRunsAfterALongFreezeLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(shortLease), redlatch.WithCommandTimeout(time.Second))
	loadScripts(t, connect(t, s.URL()))
	before, key := grants(t, s), redistest.Key(t)
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := rlock.New(client, key).Lock(ctx, rlock.WithLease(shortLease))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-time.After(shortLease + 3*time.Second) // longer than a question lasts that is begun within the lease
	s.Resume()
	resumed := time.Now()
	until(t, soon, "the late grant", func() bool { return grants(t, s) == before+1 })
	until(t, time.Until(resumed.Add(time.Second+slack)), "the lock is free", func() bool { return !locked(t, s, key) })
}
