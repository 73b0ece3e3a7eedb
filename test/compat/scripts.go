package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// watchdogMS is the watchdog timeout of clients here: short, so that renewals
// come soon, and long enough for a machine that stands still for 2 seconds. No lease
// that the tests of scripts give is the same.
const watchdogMS = 6000

// observed is a server on which everything that clients send is seen.
type observed struct {
	server *redistest.Server
	watch  *oracle.Watch
}

func observe(t *testing.T) observed {
	t.Helper()
	return observeOn(t, redistest.Start(t))
}

func observeOn(t *testing.T, server *redistest.Server) observed {
	t.Helper()
	w := must(oracle.NewWatch(server.Dial(t), server.Dial(t)))(t)
	return observed{server, w}
}

// about returns what was sent about a name since the last time.
func (o observed) about(t *testing.T, name string) []monitor.Call {
	t.Helper()
	calls := must(o.watch.Since(name))(t)
	return calls
}

// script returns the one script that was sent about a name.
func (o observed) script(t *testing.T, name string) monitor.Call {
	t.Helper()
	scripts := o.scripts(t, name)
	require.Len(t, scripts, 1)
	return scripts[0]
}

// scripts returns the scripts that were sent about a name. There may be others: Redisson's
// deletion of a latch, and subscriptions.
func (o observed) scripts(t *testing.T, name string) []monitor.Call {
	t.Helper()
	var scripts []monitor.Call
	for _, call := range o.about(t, name) {
		switch {
		case call.Script != "":
			scripts = append(scripts, call)
		case call.Name() == "SUBSCRIBE" || call.Name() == "UNSUBSCRIBE":
		case call.Name() != "DEL" || !strings.HasPrefix(call.Args[1], "redisson_unlock_latch:"):
			t.Fatalf("Redisson sent %q about %q", call.Args, name)
		}
	}
	return scripts
}

// scripts compares what is sent and what it does.
type scripts struct {
	*compat
	start  func(t *testing.T) *redistest.Server
	where  string // ends the lines of the table; none for the tests' own server
	on     observed
	theirs *oracle.Theirs
	twin   *oracle.Twin
}

// testScripts runs on the tests' own server and on Valkey, side by side.
func (c *compat) testScripts(t *testing.T) {
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s := c.scripts(t, func(t *testing.T) *redistest.Server { t.Helper(); return redistest.Start(t) })
		s.note(t, "server", s.on.server.Name()+" "+s.on.server.Version())
		t.Run("steps", s.testSteps)
		t.Run("recorded", s.testRecorded)
		t.Run("our calls", s.testOurCalls)
		t.Run("questions", s.testQuestions)
	})
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		s := c.scripts(t, func(t *testing.T) *redistest.Server { t.Helper(); return redistest.StartValkey(t) })
		s.where = fmt.Sprintf(", on %s %s", s.on.server.Name(), s.on.server.Version())
		t.Run("steps", s.testSteps)
		t.Run("recorded", s.testRecorded)
		t.Run("our calls", s.testOurCalls)
	})
}

// scripts makes a live Redisson send its scripts.
func (c *compat) scripts(t *testing.T, start func(t *testing.T) *redistest.Server) scripts {
	t.Helper()
	twin := must(oracle.NewTwin(dialer(start(t)), dialer(start(t))))(t)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	on := observeOn(t, start(t))
	return scripts{compat: c, start: start, on: on, theirs: c.capture(t, on), twin: twin}
}

// note writes a line of the table.
func (s scripts) note(t *testing.T, line, verdict string) {
	t.Helper()
	s.table.note(t, s.release.String(), line+s.where, func() string { return verdict })
}

// testQuestions holds that questions are the same commands on both sides.
func (s scripts) testQuestions(t *testing.T) {
	o := s.on
	s.table.note(t, s.release.String(), "questions", func() string { return "same" })
	j := connect(t, s.peer, o.server, nil)
	client := open(t, o.server)
	name := redistest.Key(t)
	lock := rlock.New(client, name)
	owner := must(codec.ParseOwner(j.owner(t, "t1")))(t)
	j.do(t, peer.Command{"op": "lock", "thread": "t1", "name": name, "lease": 60000})
	o.about(t, name)

	ask := func(op string, ours func(ctx context.Context) error) {
		t.Helper()
		j.do(t, peer.Command{"op": op, "thread": "t1", "name": name, "threadId": owner.N()})
		theirs := o.about(t, name)
		require.NoError(t, ours(t.Context()))
		mine := o.about(t, name)
		require.Len(t, theirs, 1)
		require.Len(t, mine, 1)
		require.Equal(t, theirs[0].Name(), mine[0].Name())
		require.Equal(t, theirs[0].Args[1:], mine[0].Args[1:])
	}
	ask("isLocked", func(ctx context.Context) error { _, err := lock.IsLocked(ctx); return err })
	ask("isHeldByThread", func(ctx context.Context) error { _, err := lock.IsHeldBy(ctx, owner); return err })
	ask("getHoldCount", func(ctx context.Context) error { _, err := lock.HoldCount(ctx, owner); return err })
	ask("remainTimeToLive", func(ctx context.Context) error { _, err := lock.TTL(ctx); return err })
}

// open makes a client of ours for this test.
func open(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client := must(redlatch.Open(t.Context(), s.URL(), opts...))(t)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// dialer returns how to connect to a server.
func dialer(s *redistest.Server) func() (redis.Conn, error) {
	return func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }
}
