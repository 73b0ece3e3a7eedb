package rlock_test

import (
	"context"
	"errors"
	"flag"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// machine runs random operations on one lock with two clients, and compares each with the model.
type machine struct {
	model
	t       *testing.T // of the bubble
	srv     *redistest.MiniServer
	clients []*redlatch.Client
	ctxs    map[*mHold]context.Context // without the holds' ends
	owners  []codec.Owner              // that were handed over
}

func TestStateMachine(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		require.NoError(t, checks.Value.Set(strconv.Itoa(testlevel.Rounds(30, 300))))
		defer func() { require.NoError(t, checks.Value.Set(checks.DefValue)) }()
	}
	rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
		// A failed rapid check panics; the panic must not leave the bubble.
		var failure any
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer func() {
				if failure = recover(); failure != nil {
					rt.Logf("%v\n%s", failure, debug.Stack())
				}
			}()
			m.run(rt)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, srv: redistest.Mini(t, embedded.WithInProcess()), ctxs: map[*mHold]context.Context{}}
	m.clients = []*redlatch.Client{m.client(), m.client()}
	m.now = time.Now()
	return m
}

func (m *machine) client() *redlatch.Client {
	c, err := redlatch.New(m.srv.Server.Dial)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (m *machine) lock(client int) *rlock.Lock { return rlock.New(m.clients[client], "lock") }

func (m *machine) run(rt *rapid.T) {
	rt.Repeat(map[string]func(*rapid.T){
		"":          m.check,
		"try":       m.try,
		"wait":      m.wait,
		"reenter":   m.reenterFrom,
		"unlock":    m.unlockOne,
		"unlock it": m.unlockOne, // twice as often
		"time":      m.time,
		"delete":    m.deleteByHand,
		"force":     m.force,
		"let go":    m.letExpire,
		"hand over": m.handOver,
		"resume":    m.resume,
		"unlock as": m.unlockAs,
		"close":     m.close,
	})
}

func (m *machine) drawHold(rt *rapid.T, client int) (*mHold, []rlock.Option) {
	h := &mHold{client: client, lease: 30 * time.Second}
	now := time.Now()
	seconds := func(what string) time.Duration {
		return time.Duration(rapid.IntRange(1, 40).Draw(rt, what)) * time.Second
	}
	var opts []rlock.Option
	switch rapid.SampledFrom([]string{"default", "fixed", "watchdog", "max"}).Draw(rt, "lease") {
	case "fixed":
		h.lease, h.fixed = seconds("fixed"), true
		h.lossAt = now.Add(h.lease - min(h.lease/10, time.Second))
		opts = append(opts, rlock.WithLease(h.lease))
	case "watchdog":
		h.lease = seconds("watchdog")
		opts = append(opts, rlock.WithWatchdog(h.lease))
	case "max":
		d := seconds("max")
		h.maxAt = now.Add(d)
		opts = append(opts, rlock.WithMaxHold(d))
	}
	return h, opts
}

// starts postpones the end of a hold by the time that it waited before it was granted.
func (h *mHold) starts(after time.Duration) {
	h.lossAt = h.lossAt.Add(after)
	if !h.maxAt.IsZero() {
		h.maxAt = h.maxAt.Add(after)
	}
}

func (m *machine) granted(h *mHold, real *rlock.Hold, parent *mHold) {
	h.real, h.parent = real, parent
	ctx := context.Background()
	if parent != nil {
		ctx = m.ctxs[parent]
	}
	m.ctxs[h] = context.WithoutCancel(real.Context(ctx))
	m.grant(h)
}

// fresh adds a hold with a new owner.
func (m *machine) fresh(h *mHold, real *rlock.Hold, parent *mHold) {
	m.server = mServer{count: 1}
	h.ownership = &mOwnership{owner: real.Owner().String()}
	m.granted(h, real, parent)
}

func drawClient(rt *rapid.T) int { return rapid.IntRange(0, 1).Draw(rt, "client") }

func (m *machine) try(rt *rapid.T) {
	client := drawClient(rt)
	h, opts := m.drawHold(rt, client)
	real, err := m.lock(client).TryLock(context.Background(), opts...)
	m.tried(rt, h, real, err, nil)
}

func (m *machine) tried(rt *rapid.T, h *mHold, real *rlock.Hold, err error, parent *mHold) {
	if m.server.owner != "" {
		require.ErrorIs(rt, err, redlatch.ErrNotAcquired)
		return
	}
	require.NoError(rt, err)
	m.fresh(h, real, parent)
}

func (m *machine) wait(rt *rapid.T) {
	client := drawClient(rt)
	h, opts := m.drawHold(rt, client)
	wait := time.Duration(rapid.IntRange(0, 40).Draw(rt, "wait")) * time.Second
	began := time.Now()
	renewed := m.renewed()
	real, err := m.lock(client).Lock(context.Background(), append(opts, rlock.WithWait(wait))...)
	took := time.Since(began)
	synctest.Wait()
	was := m.server.owner
	m.advance(time.Now())
	if err != nil {
		require.ErrorIs(rt, err, redlatch.ErrNotAcquired)
		require.Equal(rt, wait, took)
		if !renewed && m.server.owner == "" && !m.forgotten(client) {
			require.NotEmpty(rt, was, "the lock was free")
		}
		return
	}
	require.LessOrEqual(rt, took, wait)
	require.False(rt, m.live(), "the lock was granted to a second owner")
	h.starts(took)
	m.fresh(h, real, nil)
}

// forgotten reports whether a hold of the client is still queued although its key has been deleted.
func (m *machine) forgotten(client int) bool {
	for _, h := range m.holds {
		if h.client == client && !h.doomed.IsZero() {
			return true
		}
	}
	return false
}

func (m *machine) anyHold(rt *rapid.T) *mHold {
	if len(m.holds) == 0 {
		rt.Skip("no holds")
	}
	// Recent holds are more interesting.
	recent := m.holds[max(0, len(m.holds)-6):]
	return recent[rapid.IntRange(0, len(recent)-1).Draw(rt, "hold")]
}

func (m *machine) reenterFrom(rt *rapid.T) {
	from := m.anyHold(rt)
	if from.client < 0 { // it is closed, so its proof is not valid elsewhere
		client := drawClient(rt)
		h, opts := m.drawHold(rt, client)
		real, err := m.lock(client).TryLock(m.ctxs[from], opts...)
		m.tried(rt, h, real, err, nil)
		return
	}
	h, opts := m.drawHold(rt, from.client)
	outer, end := from.prove()
	if outer != nil && outer.ownership.shared && !m.onServer(outer.ownership) {
		rt.Skip("a shared owner acquires a free lock")
	}
	real, err := m.lock(from.client).TryLock(m.ctxs[from], opts...)
	switch {
	case end != nil:
		require.ErrorIs(rt, err, end)
	case outer != nil && m.excluded(rt, outer, err):
	case outer == nil:
		m.tried(rt, h, real, err, from)
	case m.reenter(outer.ownership):
		require.NoError(rt, err)
		require.Equal(rt, outer.ownership.owner, real.Owner().String())
		h.ownership = outer.ownership
		m.granted(h, real, from)
		h.enters(outer)
	default:
		require.ErrorIs(rt, err, redlatch.ErrLost)
	}
}

// excluded reports whether outer's inner hold excludes other callers. If the inner hold is at its
// maximum, either result is correct.
func (m *machine) excluded(rt *rapid.T, outer *mHold, err error) bool {
	if outer.inner == nil {
		return false
	}
	may, must := outer.inner.mayQuit(time.Now())
	if must || may && !errors.Is(err, redlatch.ErrNotAcquired) {
		outer.inner.quits()
		return outer.inner != nil && m.excluded(rt, outer, err) // another hold has taken its place
	}
	require.ErrorIs(rt, err, redlatch.ErrNotAcquired)
	require.ErrorContains(rt, err, "inner hold")
	return true
}

func (m *machine) unlockOne(rt *rapid.T) {
	h := m.anyHold(rt)
	if h.client < 0 && errors.Is(h.end, redlatch.ErrMaxHold) {
		rt.Skip("its client cannot release it")
	}
	err := h.real.Unlock()
	if !h.unlocked {
		before := m.server.count
		h.unlocked, h.result = true, m.unlock(h)
		m.checkRest(rt, h.ownership, before)
	}
	if h.result == nil {
		require.NoError(rt, err)
		return
	}
	require.ErrorIs(rt, err, h.result)
}

func (m *machine) time(rt *rapid.T) {
	ms := rapid.OneOf(rapid.IntRange(1, 3000), rapid.IntRange(1, 50_000)).Draw(rt, "ms")
	time.Sleep(time.Duration(ms) * time.Millisecond)
}

func (m *machine) deleteByHand(*rapid.T) {
	m.srv.Do(m.t, "DEL", "lock")
	m.forget()
}

func (m *machine) force(rt *rapid.T) {
	forced, err := m.lock(drawClient(rt)).ForceUnlock(context.Background())
	require.NoError(rt, err)
	require.Equal(rt, m.server.owner != "", forced)
	m.forget()
}

func (m *machine) letExpire(rt *rapid.T) {
	h := m.anyHold(rt)
	m.letGoOf(rt, h, redlatch.ErrNotHeld, h.real.LetExpire())
}

func (m *machine) handOver(rt *rapid.T) {
	h := m.anyHold(rt)
	owner, err := h.real.HandOver()
	if m.letGoOf(rt, h, redlatch.ErrHandedOver, err) {
		require.Equal(rt, h.ownership.owner, owner.String())
		m.owners = append(m.owners, owner)
		require.GreaterOrEqual(rt, ttl(m.t, m.srv, "lock"), h.lease)
		return
	}
	require.Zero(rt, owner)
}

func (m *machine) letGoOf(rt *rapid.T, h *mHold, end, err error) bool {
	refused, want := m.letGo(h, end)
	switch {
	case refused:
		require.ErrorIs(rt, err, redlatch.ErrReentered)
	case want != nil:
		require.ErrorIs(rt, err, want)
	default:
		require.NoError(rt, err)
		return true
	}
	return false
}

func (m *machine) handedOver(rt *rapid.T) codec.Owner {
	if len(m.owners) == 0 {
		rt.Skip("none was handed over")
	}
	i := rapid.IntRange(0, len(m.owners)-1).Draw(rt, "owner")
	owner := m.owners[i]
	m.owners = append(m.owners[:i:i], m.owners[i+1:]...)
	return owner
}

func (m *machine) resume(rt *rapid.T) {
	owner, client := m.handedOver(rt), drawClient(rt)
	h, opts := m.drawHold(rt, client)
	real, err := m.lock(client).Resume(context.Background(), owner, opts...)
	if m.server.owner != owner.String() {
		require.ErrorIs(rt, err, redlatch.ErrNotHeld)
		return
	}
	require.NoError(rt, err)
	h.ownership = m.shared(client, owner.String())
	m.granted(h, real, nil)
}

func (m *machine) unlockAs(rt *rapid.T) {
	owner := m.handedOver(rt)
	err := m.lock(drawClient(rt)).UnlockAs(context.Background(), owner)
	if m.server.owner != owner.String() {
		require.ErrorIs(rt, err, redlatch.ErrNotHeld)
		return
	}
	require.NoError(rt, err)
	m.server.longest = max(m.server.longest, 30*time.Second)
	if m.server.count--; m.server.count == 0 {
		m.free()
	}
}

// close replaces a client.
func (m *machine) close(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "really") > 0 {
		rt.Skip("seldom")
	}
	i := drawClient(rt)
	require.NoError(rt, m.clients[i].Close())
	m.closed(i)
	m.clients[i] = m.client()
	for _, h := range m.holds {
		if h.client == i {
			h.client = -1
		}
	}
}
