package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// watchdogMS is long enough for a machine that stalls for two seconds. Script tests never set an explicit lease of the
// same length.
const watchdogMS = 6000

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

// about returns the commands that have mentioned name since the last call.
func (o observed) about(t *testing.T, name string) []monitor.Call {
	t.Helper()
	calls := must(o.watch.Since(name))(t)
	return calls
}

func (o observed) script(t *testing.T, name string) monitor.Call {
	t.Helper()
	scripts := o.scripts(t, name)
	require.Len(t, scripts, 1)
	return scripts[0]
}

// scripts is like about, but omits subscriptions and deletions of latches.
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

type scripts struct {
	*compat
	start  func(t *testing.T) *redistest.Server
	where  string // the prefix of lines in the table
	on     observed
	theirs *oracle.Theirs
	twin   *oracle.Twin
}

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

func (c *compat) scripts(t *testing.T, start func(t *testing.T) *redistest.Server) scripts {
	t.Helper()
	twin := must(oracle.NewTwin(dialer(start(t)), dialer(start(t))))(t)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	on := observeOn(t, start(t))
	return scripts{compat: c, start: start, on: on, theirs: c.capture(t, on), twin: twin}
}

func (s scripts) note(t *testing.T, line, verdict string) {
	t.Helper()
	s.table.note(t, s.release.String(), line+s.where, func() string { return verdict })
}

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
	ask("getHoldCount", func(ctx context.Context) error { _, err := lock.HoldCount(ctx, owner); return err })
	ask("remainTimeToLive", func(ctx context.Context) error { _, err := lock.TTL(ctx); return err })
}

func open(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client := must(redlatch.Open(t.Context(), s.URL(), opts...))(t)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func dialer(s *redistest.Server) func() (redis.Conn, error) {
	return func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }
}

func gamesOf(r oracle.Release) []game {
	return slices.DeleteFunc(slices.Clone(games), func(g game) bool { return !g.kind.In(r) })
}

type player struct {
	scripts
	rt      *rapid.T
	ours    oracle.Ours
	referee *oracle.Referee
}

func (p *player) step(s oracle.Step) error {
	outcome, err := p.twin.Play(p.theirs, p.ours, s)
	if err != nil {
		return err
	}
	return p.referee.Judge(outcome)
}

func (p *player) prepare(commands [][]any) error {
	for _, c := range commands {
		command, _ := c[0].(string)
		if _, err := p.twin.Do(command, c[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func (s scripts) play(rt *rapid.T, g game, referee *oracle.Referee, ours oracle.Ours) error {
	if err := s.twin.Reset(); err != nil {
		return err
	}
	p := &player{s, rt, ours, referee}
	if g.enters == nil {
		return playObject(p, g)
	}
	return playLock(p, g)
}

func (s scripts) testSteps(t *testing.T) {
	for _, g := range gamesOf(s.release) {
		for _, way := range oracle.Ways {
			t.Run(g.kind.Name+", "+way.Name, func(t *testing.T) {
				referee := oracle.NewReferee(s.release, way.Ours, g.kind)
				var first error
				defer func() {
					if first != nil { // logged last, because a rerun may not find it again
						t.Log("the first difference:", first)
					}
				}()
				rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
					err := s.play(rt, g, referee, way.Ours)
					if first == nil {
						first = err
					}
					require.NoError(rt, err)
				})
				s.noteSteps(t, g.kind, way, referee)
			})
		}
	}
}

func (s scripts) noteSteps(t *testing.T, kind *oracle.Kind, way oracle.Way, referee *oracle.Referee) {
	t.Helper()
	sum := 0
	for _, op := range kind.OperationsOf(s.release) {
		steps := referee.Steps(op)
		require.True(t, steps > 0 || op.Ours == nil, "no steps of %s", op)
		sum += steps
	}
	s.note(t, kind.Name+", "+way.Name, fmt.Sprintf("same, %d steps", sum))
}

func corpusFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(checkout(t), "test", "compat", "testdata")
}

func checkout(t *testing.T) string {
	t.Helper()
	dir := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Join("..", dir)
	}
	require.FailNow(t, "no go.mod above the folder of the tests")
	return ""
}

func loadCorpus(t *testing.T, kind *oracle.Kind) *oracle.Corpus {
	t.Helper()
	c := must(oracle.Load(corpusFolder(t), kind))(t)
	return c
}

func newStage(t *testing.T, dial func() (redis.Conn, error)) *oracle.Stage {
	t.Helper()
	s := must(oracle.NewStage(dial))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func writes() bool { return os.Getenv("REDLATCH_VECTORS") == "write" }

// recording guards the files of the corpus, because releases are tested concurrently.
var recording sync.Mutex

// testRecorded checks or records the corpus. A release that is not recorded must match its predecessor.
func (s scripts) testRecorded(t *testing.T) {
	stage := newStage(t, dialer(s.start(t)))
	for _, kind := range oracle.KindsOf(s.release) {
		recording.Lock()
		corpus := loadCorpus(t, kind)
		vectors := corpus.Of(s.release)
		recording.Unlock()
		var cases []*oracle.Case
		for _, v := range vectors {
			cases = append(cases, v.Case)
		}
		results := must(stage.Record(s.theirs, cases))(t)
		if writes() {
			record(t, s.release, kind, results)
			continue
		}
		for i, v := range vectors {
			want := *v.Result
			want.Redisson, want.Own, want.Shared = results[i].Redisson, nil, nil
			require.Equal(t, want, results[i], "%s %s: run `make vectors` and review the changes", v.Operation, v.Does)
		}
		s.note(t, "recorded, "+kind.Name, fmt.Sprintf("as recorded, %d vectors", len(vectors)))
	}
}

func record(t *testing.T, r oracle.Release, kind *oracle.Kind, results []oracle.Result) {
	t.Helper()
	recording.Lock()
	defer recording.Unlock()
	corpus := loadCorpus(t, kind)
	corpus.Replace(r, results)
	require.NoError(t, corpus.Save(corpusFolder(t)))
}
