package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// queueKind is a kind of lock with a queue on the server, whose calls are names.
type queueKind struct {
	protocol.Protocol
	kind, key string
}

func (q *queueKind) Kind() string { return q.kind }
func (q *queueKind) Key() string  { return q.key }

func (q *queueKind) Heartbeat(c *transport.Call, window int, waiters []protocol.Waiter, others []reply.Other) {
	c.Command = "HEARTBEAT"
	c.Args = append(c.Args, window)
	for _, w := range waiters {
		c.Args = append(c.Args, w.Owner)
	}
	for _, o := range others {
		if o.Living {
			c.Args = append(c.Args, o.Owner+" lives")
		}
	}
}

func (q *queueKind) Evict(c *transport.Call, dead []reply.Place) {
	c.Command = "EVICT"
	for _, p := range dead {
		c.Args = append(c.Args, p.Owner)
	}
}

func (q *queueKind) Nudge(c *transport.Call, owner string) {
	c.Command = "NUDGE"
	c.Args = append(c.Args, owner)
}

func (q *queueKind) WaiterChannel(owner string) string { return owner }

// there is a transport to a queue that a test arranges.
type there struct {
	*fake
	back chan struct{}

	mu        sync.Mutex // guards what follows
	left      int64
	queue     []string
	missing   []string
	listeners map[string]int64
	refusal   error            // of counting
	outage    error            // of everything else
	mute      bool             // counts have no answer
	garbled   bool             // all replies are of another form
	args      map[string][]any // of the last call of each name
}

func (th *there) Reconnected() <-chan struct{} {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.back
}

func (th *there) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.mute {
		th.mu.Unlock()
		<-ctx.Done()
		th.mu.Lock()
		return nil, ctx.Err()
	}
	var counts []int64
	for _, c := range channels {
		counts = append(counts, th.listeners[c])
	}
	return counts, th.refusal
}

// script answers like the scripts.
func (th *there) script(c *sentCall) (any, error, bool) { //nolint:revive // as fake.answer
	th.mu.Lock()
	defer th.mu.Unlock()
	th.args[c.name] = slices.Clone(c.call.Args)
	switch {
	case th.outage != nil:
		return nil, th.outage, true
	case th.garbled:
		return "OK", nil, true
	case c.name == "EVICT":
		var gone []any
		for _, owner := range c.call.Args {
			gone = append(gone, owner)
			th.queue = th.queue[1:]
		}
		return gone, nil, true
	case c.name == "NUDGE":
		return int64(1), nil, true
	}
	var front, missing []any
	for _, owner := range th.queue {
		front = append(front, owner, "1")
	}
	for _, owner := range th.missing {
		missing = append(missing, owner)
	}
	return []any{th.left, front, missing, int64(len(th.queue))}, nil, true
}

// said returns the arguments of the last call of a name.
func (th *there) said(name string) []any {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.args[name]
}

func (th *there) set(change func()) {
	th.mu.Lock()
	defer th.mu.Unlock()
	change()
}

// kept has three dead of other processes, one of this one, and the room it sits in.
func kept(t *testing.T, grace time.Duration) (*there, *Engine, *diary, *Seat) {
	t.Helper()
	th := &there{fake: &fake{}, back: make(chan struct{}), left: 60_000, args: map[string][]any{}, listeners: map[string]int64{"mine": 1}}
	th.answer = th.script
	for range 3 {
		id, err := uuid.NewV7()
		require.NoError(t, err)
		th.queue = append(th.queue, codec.NewOwner(id, 1).String())
	}
	th.queue = append(th.queue, "mine")
	e, log := engineOver(t, th)
	e.Grace = grace
	s := sit(e, "fair", "lock", "mine")
	s.Hears(true)
	return th, e, log, s
}

// count returns how many calls of a name were sent.
func (th *there) count(name string) int {
	n := 0
	for _, c := range th.names() {
		if c == name {
			n++
		}
	}
	return n
}

func TestWhoWaitsForAMomentCostsNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 0)
		time.Sleep(heartbeat - time.Millisecond)
		synctest.Wait()
		require.Empty(t, th.names())
		s.Leave()
		time.Sleep(time.Hour)
		require.Empty(t, th.names())
	})
}

func TestOneHeartbeatForAllInARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, _, s := kept(t, 0)
		others := []*Seat{sit(e, "fair", "lock", "b"), sit(e, "fair", "lock", "c"), sit(e, "fair", "lock", "c")}
		time.Sleep(10*heartbeat + time.Second)
		require.Equal(t, 10, th.count("HEARTBEAT"))
		require.Equal(t, []any{70, "mine", "b", "c"}, th.said("HEARTBEAT"))
		for _, o := range append(others, s) {
			o.Leave()
		}
		before := len(th.names())
		time.Sleep(time.Hour)
		require.Len(t, th.names(), before, "nobody is left")
	})
}

func TestDeadInFrontAreEvictedAndToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, log, s := kept(t, 10*time.Second)
		defer s.Leave()
		var told []Eviction
		e.Hooks.Evicted = func(ev Eviction) { told = append(told, ev) }
		time.Sleep(heartbeat + 10*time.Second - time.Millisecond)
		synctest.Wait()
		require.Zero(t, th.count("EVICT"), "its grace is not over")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 1, th.count("EVICT"), "all of them at once")
		require.Len(t, told, 3)
		require.Equal(t, "lock", told[0].Name)
		require.Equal(t, "fair", told[0].Kind)
		require.True(t, told[0].Native)
		require.GreaterOrEqual(t, told[0].Absent, 10*time.Second)
		require.Contains(t, log.String(), told[2].Owner)
		time.Sleep(time.Minute)
		require.Equal(t, 1, th.count("EVICT"))
	})
}

func TestTheLivingAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		head := th.queue[0]
		th.set(func() { th.listeners[head] = 1 })
		time.Sleep(2*heartbeat + time.Second)
		require.Equal(t, []any{68, "mine", head + " lives"}, th.said("HEARTBEAT"))
		time.Sleep(time.Minute)
		require.Zero(t, th.count("EVICT"))
	})
}

func TestMissingOnesAndTheHeadOfAFreeLockAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, _, s := kept(t, 0)
		other := sit(e, "fair", "lock", "other")
		defer other.Leave()
		defer s.Leave()
		th.set(func() { th.missing = []string{"other"} })
		time.Sleep(heartbeat + time.Second)
		require.True(t, received(other.Call), "it lost its place")
		require.False(t, received(s.Call))
		th.set(func() { th.missing, th.queue, th.left = nil, []string{"mine"}, -2 })
		time.Sleep(heartbeat)
		require.True(t, received(s.Call), "the lock is free, and it is the first")
	})
}

func TestSleepingHeadIsNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		head := th.queue[0]
		th.set(func() { th.left, th.listeners[head] = -2, 1 })
		time.Sleep(heartbeat + 1500*time.Millisecond)
		require.Equal(t, 1, th.count("NUDGE"))
		require.Equal(t, []any{head}, th.said("NUDGE"))
		time.Sleep(10 * time.Second)
		require.InDelta(t, 6, th.count("NUDGE"), 1, "one in two seconds")
	})
}

func TestGapsAndNewConnectionsHurryTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		time.Sleep(heartbeat + time.Second)
		require.Equal(t, 1, th.count("HEARTBEAT"))
		for range 100 {
			s.Gap() // of all those in a crowd
		}
		synctest.Wait()
		require.Equal(t, 2, th.count("HEARTBEAT"), "at once, and once for all")
		time.Sleep(time.Second)
		before := th.count("HEARTBEAT")
		require.LessOrEqual(t, before, 3, "once more for those that came during the first")
		th.set(func() { close(th.back); th.back = make(chan struct{}) })
		synctest.Wait()
		require.Equal(t, before+1, th.count("HEARTBEAT"))
	})
}

func TestGapsPutEvictionsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		for range 20 {
			time.Sleep(heartbeat - time.Millisecond) // before, and not as, the next one is due
			s.Gap()
		}
		require.Zero(t, th.count("EVICT"))
	})
}

func TestNewConnectionsPutEvictionsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, _, s := kept(t, 10*time.Second)
		defer s.Leave()
		for range 20 {
			time.Sleep(heartbeat - time.Millisecond) // before, and not as, the next one is due
			th.set(func() { close(th.back); th.back = make(chan struct{}) })
		}
		require.Zero(t, th.count("EVICT"))
	})
}

func TestWithoutCountsNobodyIsEvictedAndOneLineSaysSo(t *testing.T) {
	for name, refuse := range map[string]func(th *there){
		"no right": func(th *there) { th.refusal = &transport.ServerError{Text: "NOPERM this user"} },
		"a proxy":  func(th *there) { th.listeners["mine"] = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _, log, s := kept(t, 10*time.Second)
				defer s.Leave()
				th.set(func() { refuse(th) })
				time.Sleep(5 * time.Minute)
				require.Zero(t, th.count("EVICT"))
				require.GreaterOrEqual(t, th.count("HEARTBEAT"), 59, "places are kept all the same")
				require.Equal(t, 1, log.count("cannot be told from live ones"))
				th.set(func() { th.refusal, th.listeners["mine"] = nil, 1 })
				time.Sleep(time.Minute)
				require.Equal(t, 1, th.count("EVICT"))
				require.Equal(t, 1, log.count("told from live ones again"))
			})
		})
	}
}

func TestHeartbeatThatFailsIsTriedAgainAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, log, s := kept(t, 10*time.Second)
		defer s.Leave()
		th.set(func() { th.outage = &transport.ServerError{Text: "WRONGTYPE that is no list"} })
		time.Sleep(heartbeat + 10*time.Second)
		require.InDelta(t, 10, th.count("HEARTBEAT"), 2, "once a second")
		require.Equal(t, 1, log.count("cannot be looked after"))
		th.set(func() { th.outage = nil })
		time.Sleep(time.Minute)
		require.Equal(t, 1, th.count("EVICT"))
	})
}

func TestKeepingEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, _, s := kept(t, 10*time.Second)
		time.Sleep(heartbeat + time.Second)
		s.Leave()
		require.NoError(t, e.Close())
		before := len(th.names())
		time.Sleep(time.Hour)
		require.Len(t, th.names(), before)
	})
}

func TestKeepingThatNobodyNeedsIsTakenUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, e, _, s := kept(t, 10*time.Second)
		anchor := e.rooms.Join(lockID{"fair", "lock"}, nil)
		require.Same(t, s.room, anchor)
		time.Sleep(heartbeat + time.Second)
		s.Leave()
		synctest.Wait()
		require.False(t, s.room.kept)
		before := th.count("HEARTBEAT")
		s = sit(e, "fair", "lock", "mine")
		time.Sleep(heartbeat + time.Second)
		require.Equal(t, before+1, th.count("HEARTBEAT"))
		s.Leave()
		e.rooms.Leave(lockID{"fair", "lock"})
		requireNoRoom(t, e)
	})
}

var errNeverMind = errors.New("never mind")

func TestCountingComplainsOfConnectionsOnlyWhenTheyStayAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _, log, s := kept(t, 10*time.Second)
		defer s.Leave()
		th.set(func() { th.refusal = errBroken })
		time.Sleep(2*heartbeat + time.Second)
		require.Zero(t, log.count("cannot be told from live ones"), "it may come back soon")
		time.Sleep(heartbeat)
		require.Equal(t, 1, log.count("cannot be told from live ones"))
		th.set(func() { th.refusal = errNeverMind })
		time.Sleep(time.Minute)
		require.Equal(t, 1, log.count("cannot be told from live ones"))
	})
}
