//go:build unix

package rfairlock_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// What it may take until a dead waiter is passed over: the grace of its kind, one
	// period of the heartbeat, and what a busy machine may need, which is less than to the
	// grace of the next kind.
	nativeBound       = 10*time.Second + 5*time.Second + 10*time.Second
	subscribedBound   = 30*time.Second + 5*time.Second + 10*time.Second
	unsubscribedBound = 60*time.Second + 5*time.Second + 10*time.Second
)

// stop makes the process stand still, and returns when it does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

// resume lets it go on.
func (p *process) resume(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
}

// stage is a part of a play. It returns the next one, nil after the last.
type stage func(t *testing.T) stage

type play struct {
	about string
	next  stage
}

// All of it is played side by side, a stage of each play at a time: what they do is
// wait. The deadlines of the dead are hours away, and some die while they are heard,
// some have never been heard.
func TestU13DeadWaitersDelayNoOtherForLong(t *testing.T) { //nolint:tparallel // its subtest only looks for a Valkey
	testlevel.All(t, "several processes, 47 s")
	t.Parallel()
	plays := []play{
		{"foreign waiters that were subscribed", subscribedOnce}, // whose second stage must not wait
		{"foreign waiters that were never subscribed", neverSubscribed},
		{"foreign waiters that died long ago", deadForLong},
		{"many idle waiters", idleWaiters},
		{"fifty of one process", fiftyInFront},
	}
	plays = append(plays, headDeaths(redistest.Start(t))...)
	valkey := false
	t.Run("with a Valkey", func(t *testing.T) { redistest.StartValkey(t); valkey = true })
	if valkey {
		plays = append(plays, headDeaths(redistest.StartValkey(t))...)
	}
	for len(plays) > 0 {
		var rest []play
		for _, p := range plays {
			t.Log(p.about)
			if next := p.next(t); next != nil {
				rest = append(rest, play{p.about, next})
			}
		}
		plays = rest
	}
}

func neverSubscribed(t *testing.T) stage {
	t.Helper()
	m := newMixed(t, redistest.Start(t), false)
	released := time.Now()
	m.release(t)
	return func(t *testing.T) stage {
		t.Helper()
		m.passed(t, released, unsubscribedBound, false)
		return nil
	}
}

func subscribedOnce(t *testing.T) stage {
	t.Helper()
	srv := redistest.Start(t)
	m := newMixed(t, srv, true)
	before := counts(t, srv)
	return func(t *testing.T) stage {
		t.Helper()
		until(t, time.Minute, "they were counted", func() bool { return counts(t, srv) >= before+2*runs })
		for _, s := range m.dead {
			s.leaves(t)
		}
		released := time.Now()
		m.release(t)
		return func(t *testing.T) stage {
			t.Helper()
			m.passed(t, released, subscribedBound, true)
			return nil
		}
	}
}

// deadForLong: they are gone when the lock comes free.
func deadForLong(t *testing.T) stage {
	t.Helper()
	m := newMixed(t, redistest.Start(t), false)
	began := time.Now()
	return func(t *testing.T) stage {
		t.Helper()
		return func(t *testing.T) stage {
			t.Helper()
			for _, name := range m.names {
				until(t, time.Until(began)+unsubscribedBound+soon, "the dead are gone", func() bool { return len(queueOf(t, m.srv, name)) == 2 })
			}
			released := time.Now()
			m.release(t)
			m.passed(t, released, soon, false)
			return nil
		}
	}
}

// counts returns how often listeners were counted.
func counts(t *testing.T, srv *redistest.Server) int64 {
	t.Helper()
	var n int64
	for command, times := range srv.CommandStats(t) {
		if strings.HasPrefix(command, "pubsub") {
			n += times
		}
	}
	return n
}

func fiftyInFront(t *testing.T) stage {
	t.Helper()
	q := newQueues(t, redistest.Start(t), runs)
	dies := startWaiter(t, q.srv.URL())
	q.enter(t, dies, 50)
	lives := q.join(t, connect(t, q.srv.URL()))
	dies.kill(t)
	released := time.Now()
	q.release(t)
	return func(t *testing.T) stage {
		t.Helper()
		takenWithin(t, lives, released, nativeBound)
		for _, name := range q.names {
			requireNoTrace(t, q.srv, name)
		}
		return nil
	}
}

// deaths are those of a process with the first in the queue. Where it stands still,
// it is not fast enough to take the lock.
var deaths = map[string]func(*testing.T, *queues, *process){
	"the first dies while the lock is held": func(t *testing.T, q *queues, head *process) {
		t.Helper()
		head.kill(t)
		q.release(t)
	},
	"the first dies while the lock is free": func(t *testing.T, q *queues, head *process) {
		t.Helper()
		head.stop(t)
		q.vanish(t)
		head.kill(t)
	},
	"the first dies while it is being notified": func(t *testing.T, q *queues, head *process) {
		t.Helper()
		head.stop(t)
		q.release(t)
		head.kill(t)
	},
}

func headDeaths(srv redistest.Target) []play {
	var all []play
	for about, dies := range deaths {
		all = append(all, play{about, headDies(dies, srv)})
	}
	return all
}

func headDies(dies func(*testing.T, *queues, *process), srv redistest.Target) stage {
	return func(t *testing.T) stage {
		t.Helper()
		q := newQueues(t, srv, runs)
		head := startWaiter(t, srv.URL())
		q.enter(t, head, 1)
		lives := q.join(t, connect(t, srv.URL()))
		died := time.Now()
		dies(t, q, head)
		return func(t *testing.T) stage {
			t.Helper()
			takenWithin(t, lives, died, nativeBound)
			return nil
		}
	}
}

// idleWaiters: a thousand of one process cost two connections, a heartbeat and a count
// each five seconds, and a poll each ten.
func idleWaiters(t *testing.T) stage {
	t.Helper()
	const many = 1000
	q := newQueues(t, redistest.Start(t), 1)
	srv, name := q.srv.(*redistest.Server), q.names[0]
	q.foreignWaiter(t, q.names, true)
	connections := srv.Clients(t)
	client := connect(t, srv.URL())
	for range many {
		await(t.Context(), rfairlock.New(client, name))
	}
	until(t, time.Minute, "all listen", func() bool { return len(srv.Channels(t)) == many+1 })
	scripts := func() int64 { return srv.CommandStats(t)["evalsha"] + srv.CommandStats(t)["eval"] }
	until(t, time.Minute, "all are at rest", func() bool {
		before := scripts()
		<-time.After(time.Second)
		return scripts() <= before+1
	})
	asked, counted, began := scripts(), counts(t, srv), time.Now()
	return func(t *testing.T) stage {
		t.Helper()
		return func(t *testing.T) stage {
			t.Helper()
			<-time.After(time.Until(began.Add(30 * time.Second)))
			asked, counted = scripts()-asked, counts(t, srv)-counted-1 // Channels, above
			seconds := time.Since(began).Seconds()
			t.Logf("%d scripts and %d counts in %.1f s", asked, counted, seconds)
			require.LessOrEqual(t, float64(asked), seconds/5+1+seconds/10+1)
			require.LessOrEqual(t, float64(counted), seconds/5+1)
			require.GreaterOrEqual(t, float64(counted), seconds/5-2)
			require.Equal(t, connections+2, srv.Clients(t))
			require.Len(t, queueOf(t, srv, name), many+1)
			return nil
		}
	}
}
