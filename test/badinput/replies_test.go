// Package badinput tests the library with bad input.
//
// Some tests use bad input from the caller. They call every exported function, method and option with fake time and one
// bad argument at a time, such as names that are empty, a mebibyte long or not UTF-8, extreme numbers and durations,
// and nil. The call must return in time without an undocumented panic, and its error must be short and known. The test
// fails if a new function has no row or a new type has no receiver.
//
// Other tests use bad input from the server. A transport sends invalid replies to each script and command of a lock,
// and a server on a real socket announces huge strings and arrays or violates the protocol. Each call must return in
// time with an error that describes the problem.
package badinput_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// stage is a world whose client has a fake transport.
type stage struct {
	*world
	fake *fake
}

// play contains the calls of a program while target, which is a script or a command of its lock, gets an invalid reply.
// act returns the errors of the calls.
type play struct {
	target string
	lock   func(*redlatch.Client, string) *rlock.Lock
	act    func(s *stage, l *rlock.Lock) []error
}

var sharedOwner = codec.NewOwner(uuid.UUID{7}, 1)

// plays contains at least one play for each script and command.
var plays = map[string]play{
	"lock":              {"acquire", rlock.New, locks},
	"try":               {"acquire", rlock.New, tries},
	"lock as an owner":  {"acquire", rlock.New, locksAs},
	"unlock":            {"release", rlock.New, unlocks},
	"inner unlock":      {"release", rlock.New, reenters},
	"re-enter":          {"reenter", rlock.New, reenters},
	"replicas":          {"replicate", rlock.New, locks},
	"fair replicas":     {"replicate", rfairlock.New, tries},
	"renewal":           {"renew", rlock.New, works},
	"hand over":         {"renew", rlock.New, handsOver},
	"resume":            {"renew", rlock.New, resumes},
	"unlock as":         {"release_shared", rlock.New, unlocksAs},
	"shared unlock":     {"release_shared", rlock.New, locksAs},
	"latch":             {"DEL", rlock.New, unlocksAs},
	"force":             {"force_release", rlock.New, asks},
	"is locked":         {"EXISTS", rlock.New, asks},
	"hold count":        {"HGET", rlock.New, asks},
	"ttl":               {"PTTL", rlock.New, asks},
	"inspect":           {"inspect", rlock.New, asks},
	"fair lock":         {"fair_acquire", rfairlock.New, locks},
	"fair try":          {"fair_try", rfairlock.New, tries},
	"fair as an owner":  {"fair_acquire", rfairlock.New, locksAs},
	"fair unlock":       {"fair_release", rfairlock.New, unlocks},
	"fair re-enter":     {"fair_reenter", rfairlock.New, reenters},
	"fair unlock as":    {"fair_release_shared", rfairlock.New, unlocksAs},
	"fair force":        {"fair_force_release", rfairlock.New, asks},
	"fair inspect":      {"fair_inspect", rfairlock.New, asks},
	"fair evict looks":  {"fair_inspect", rfairlock.New, evicts},
	"fair evict":        {"fair_evict", rfairlock.New, evicts},
	"fair evict second": {"fair_give_up", rfairlock.New, evictsSecond},
	"fenced lock":       {"fenced_acquire", locksuite.Fenced[0].New, locks},
	"fair-fenced lock":  {"fenced_fair_acquire", locksuite.Fenced[1].New, locks},
	"fair-fenced try":   {"fenced_fair_try", locksuite.Fenced[1].New, tries},
	"time":              {"TIME", rfairlock.New, clocks},
}

// unlocked unlocks an acquired lock and returns all errors.
func unlocked(h *rlock.Hold, err error) []error {
	if err != nil {
		return []error{err}
	}
	return []error{h.Unlock()}
}

func locks(s *stage, l *rlock.Lock) []error {
	return unlocked(l.Lock(s.bounded(), rlock.WithWait(10*time.Second)))
}

func tries(s *stage, l *rlock.Lock) []error { return unlocked(l.TryLock(s.bounded())) }

func locksAs(s *stage, l *rlock.Lock) []error {
	return unlocked(l.Lock(s.bounded(), rlock.WithOwner(sharedOwner), rlock.WithWait(10*time.Second)))
}

func (s *stage) held(l *rlock.Lock) *rlock.Hold {
	h, err := l.Lock(s.bounded())
	require.NoError(s.t, err)
	return h
}

func unlocks(s *stage, l *rlock.Lock) []error { return []error{s.held(l).Unlock()} }

func reenters(s *stage, l *rlock.Lock) []error {
	outer := s.held(l)
	inner, err := l.Lock(outer.Context(s.bounded()))
	if err == nil {
		err = inner.Unlock()
	}
	return []error{err, outer.Unlock()}
}

func works(s *stage, l *rlock.Lock) []error {
	h := s.held(l)
	time.Sleep(time.Minute)
	return []error{h.Err(), h.Unlock()}
}

func handsOver(s *stage, l *rlock.Lock) []error {
	h := s.held(l)
	_, err := h.HandOver()
	return []error{err, h.Unlock()}
}

func resumes(s *stage, l *rlock.Lock) []error { return unlocked(l.Resume(s.bounded(), sharedOwner)) }

func unlocksAs(s *stage, l *rlock.Lock) []error { return []error{l.UnlockAs(s.bounded(), sharedOwner)} }

func asks(s *stage, l *rlock.Lock) []error {
	ctx := s.bounded()
	_, forced := l.ForceUnlock(ctx)
	_, locked := l.IsLocked(ctx)
	_, count := l.HoldCount(ctx, sharedOwner)
	_, ttl := l.TTL(ctx)
	_, seen := admin.Inspect(ctx, l)
	return []error{forced, locked, count, ttl, seen}
}

func evicts(s *stage, l *rlock.Lock) []error {
	_, err := admin.ForceEvict(s.bounded(), l, "first")
	return []error{err}
}

func evictsSecond(s *stage, l *rlock.Lock) []error {
	_, err := admin.ForceEvict(s.bounded(), l, "second")
	return []error{err}
}

func clocks(s *stage, l *rlock.Lock) []error {
	_, err := engine.EngineOf(s.client).Clock.Offset(s.bounded())
	return append(locks(s, l), err)
}

// perform runs the play in a bubble and returns the errors.
func (p play) perform(t *testing.T, reply any) (errs []error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{target: p.target, reply: reply}
		client, err := redlatch.NewWithTransport(f, redlatch.WithServerTime(), redlatch.WithReplicaSync(1, time.Second))
		require.NoError(t, err)
		s := &stage{&world{t: t, client: client}, f}
		began := time.Now()
		errs = p.act(s, p.lock(client, "job"))
		assert.LessOrEqual(t, time.Since(began), bound+time.Minute, "too late")
		time.Sleep(2 * time.Minute) // for background work
		require.NoError(t, client.Close())
		calls, struck := f.counts()
		assert.Positive(t, struck, "%s was never sent: the check itself is broken", p.target)
		assert.Less(t, calls, tooMany, "polls without a pause: %T %.80q", reply, fmt.Sprint(reply))
	})
	return errs
}

func TestCallsSurviveInvalidReplies(t *testing.T) {
	t.Parallel()
	for name, p := range plays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, reply := range testlevel.Part(replies, 20, name) {
				what := fmt.Sprintf("%T %.80q", reply, fmt.Sprint(reply))
				for _, err := range p.perform(t, reply) {
					if err != nil {
						assert.NoError(t, complaint(err), what)
					}
				}
			}
		})
	}
}

func TestInvalidReplyReturnsError(t *testing.T) {
	t.Parallel()
	for name, p := range plays {
		if name == "latch" || name == "fair evict second" {
			continue // replies are not read
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, reply := range []any{"OK", 1.5, []any{[]any{nil}, "x", nil, nil, nil, nil, nil}, nested(100)} {
				joined := errors.Join(p.perform(t, reply)...)
				require.Error(t, joined, "%T", reply)
				if p.target != "renew" || name != "renewal" {
					require.ErrorIs(t, joined, transport.ErrBadReply, "%T", reply)
				} else {
					require.ErrorIs(t, joined, redlatch.ErrLost, "%T", reply)
				}
			}
		})
	}
}

func TestPollIntervalIsCappedForHugeTTL(t *testing.T) {
	t.Parallel()
	for _, left := range []int64{math.MaxInt64, math.MaxInt64 / int64(time.Millisecond), math.MaxInt64/int64(time.Millisecond) + 1} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{target: "acquire", reply: left}
			client, err := redlatch.NewWithTransport(f)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, err = rlock.New(client, "job").Lock(ctx)
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
			require.NoError(t, client.Close())
			calls, _ := f.counts()
			require.InDelta(t, 60, calls, 10, "ten minutes, polled every ten seconds")
		})
	}
}

// queued is the reply to a fair waiter that is queued.
var queued = []any{int64(5000), codec.NewOwner(uuid.UUID{7}, 9).String(), "first", int64(1)}

// The heartbeat of a queue runs while it has waiters.
func TestHeartbeatSurvivesInvalidReplies(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"fair_heartbeat", "fair_evict", "fair_nudge", "fair_give_up"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			for _, reply := range testlevel.Part(replies, 4, target) {
				synctest.Test(t, func(t *testing.T) { waitsInAQueue(t, target, reply) })
			}
		})
	}
}

func waitsInAQueue(t *testing.T, target string, reply any) {
	t.Helper()
	f := &queueing{fake: &fake{target: target, reply: reply}}
	client, err := redlatch.NewWithTransport(f)
	require.NoError(t, err)
	began := time.Now()
	_, err = rfairlock.New(client, "job").Lock(t.Context(), rlock.WithWait(time.Minute))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired, "%T", reply)
	require.NoError(t, complaint(err))
	assert.LessOrEqual(t, time.Since(began), 2*time.Minute)
	time.Sleep(time.Minute) // the place is released
	require.NoError(t, client.Close())
	calls, _ := f.counts()
	assert.Less(t, calls, tooMany, "%T: polls without a pause", reply)
}

// queueing is a fake whose lock is held.
type queueing struct{ *fake }

func (q *queueing) Start(c *transport.Call, done transport.Done) {
	if c.Name() != "fair_acquire" {
		q.fake.Start(c, done)
		return
	}
	(&fake{target: "fair_acquire", reply: queued}).Start(c, done)
}

// recording is a fake that records the target counts of releases.
type recording struct {
	*fake
	targets []any // not guarded by a mutex
}

func (r *recording) Start(c *transport.Call, done transport.Done) {
	if c.Name() == "release" {
		r.targets = append(r.targets, c.Args[4])
	}
	r.fake.Start(c, done)
}

// The reentry may have been counted, so the count is corrected before the lock is released.
func TestReentryWithInvalidReplyIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &recording{fake: &fake{target: "reenter", reply: "OK"}}
		client, err := redlatch.NewWithTransport(f)
		require.NoError(t, err)
		l := rlock.New(client, "job")
		outer, err := l.TryLock(t.Context())
		require.NoError(t, err)
		_, err = l.TryLock(outer.Context(t.Context()))
		require.ErrorIs(t, err, transport.ErrBadReply)
		synctest.Wait()
		require.NoError(t, outer.Err(), "the outer hold goes on")
		require.NoError(t, outer.Unlock())
		require.NoError(t, client.Close())
		require.Equal(t, []any{int64(1), int64(0)}, f.targets)
	})
}

func TestMain(m *testing.M) { redistest.Main(m) }
