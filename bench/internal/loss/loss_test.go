package loss

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// go-redis dials a server that refuses once more a second after its client was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func needsServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server, and -short asks for tests without")
	}
}

// lease is the shortest lease that can be renewed reliably on a busy machine.
const lease = 3 * time.Second

func plan(clients ...Client) Plan {
	return Plan{
		Clients: clients, Ways: Ways(), Leases: []time.Duration{lease}, Holds: 6, Rounds: 1, Log: io.Discard,
	}
}

func TestRedlatchReportsLossBeforeLockIsFree(t *testing.T) {
	t.Parallel()
	needsServer(t)
	p := plan(Clients()[0])
	redistest.InRealTime(t, "bench measures real servers", func(tb testing.TB) {
		tb.Helper()
		outcomes, err := p.Run(tb.Context())
		require.NoError(tb, err)
		require.Len(tb, outcomes, len(Ways()))
		for _, o := range outcomes {
			p.requireTold(tb, o)
		}
	})
}

func (p Plan) requireTold(tb testing.TB, o Outcome) {
	tb.Helper()
	way := wayCalled(o.Way)
	require.Len(tb, o.Before, p.Holds, o.Way)
	assert.Len(tb, o.Gap, p.Holds, o.Way)
	assert.Zero(tb, o.Never, o.Way)
	assert.Equal(tb, way.Forgets, o.Late() > 0, "%s: %v", o.Way, o.Before)
	if way.lives && !way.Forgets {
		assert.Len(tb, o.Rival, p.Holds-o.GivenBack, o.Way)
	}
	for _, us := range o.Rival { // two accounts of one moment
		assert.True(tb, 0 <= us && us <= 1_000_000, "%s: rival and server disagree: %v", o.Way, o.Rival)
	}
}

func wayCalled(name string) Way {
	ways := Ways()
	return ways[slices.IndexFunc(ways, func(w Way) bool { return w.Name == name })]
}

func TestPeersReportLoss(t *testing.T) {
	t.Parallel()
	needsServer(t)
	p := plan(Clients()[1:]...)
	p.Ways = p.Ways[3:5] // their calls wait for 10 s and longer on a server that is only silent
	var outcomes []Outcome
	redistest.InRealTime(t, "bench measures real servers", func(tb testing.TB) {
		tb.Helper()
		var err error
		outcomes, err = p.Run(tb.Context())
		require.NoError(tb, err)
	})
	require.Len(t, outcomes, 3*2, "one signal of rueidislock, and two of redsync")
	for _, o := range outcomes {
		assert.Len(t, o.Before, p.Holds, o.Client, o.Tells)
	}
}

func TestEarlyReleaseFailsCell(t *testing.T) {
	t.Parallel()
	needsServer(t)
	hasty := Clients()[0]
	hasty.open = func(ctx context.Context, addr string, _ time.Duration) (holder, error) {
		h, err := openRedlatch(ctx, addr, lease)
		if err == nil {
			defer h.close()
		}
		return h, err
	}
	p := plan(hasty)
	p.Ways = p.Ways[:1]
	_, err := p.Run(t.Context())
	require.ErrorContains(t, err, "redlatch, frozen, 3s")
}

func TestTrialUsesServerAndRivalTimes(t *testing.T) {
	t.Parallel()
	zero := time.UnixMilli(1_700_000_000_000)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	const expiry, patience = 1000, 5000
	tests := map[string]struct {
		notified, valid int // 0 if never
		free            int // 0 if there is no rival
		forgets         bool
		want            Outcome
	}{
		"in time":     {notified: 800, valid: 799, want: Outcome{Before: []float64{200_000}, Gap: []float64{1000}}},
		"late":        {notified: 1100, valid: 1098, want: Outcome{Before: []float64{-100_000}, Gap: []float64{2000}}},
		"never":       {valid: 4999, want: Outcome{Before: []float64{-4_000_000}, Gap: []float64{0}, Never: 1}},
		"at first":    {notified: 800, want: Outcome{Before: []float64{200_000}, Gap: []float64{0}}},
		"seen":        {notified: 800, valid: 799, free: 1004, want: Outcome{Before: []float64{200_000}, Gap: []float64{1000}, Rival: []float64{4000}}},
		"given back":  {notified: 800, valid: 799, free: 801, want: Outcome{Before: []float64{200_000}, Gap: []float64{1000}, GivenBack: 1}},
		"taken early": {notified: 800, valid: 799, free: 700, want: Outcome{Before: []float64{-100_000}, Gap: []float64{1000}}},
		"forgotten":   {notified: 300, valid: 299, forgets: true, want: Outcome{Before: []float64{-300_000}, Gap: []float64{1000}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := account{struck: zero, until: at(patience), free: map[string]time.Time{}}
			if !test.forgets {
				a.expiries = map[string]time.Time{}
			}
			if test.free > 0 {
				a.free["k"] = at(test.free)
			}
			s := &sight{}
			if test.notified > 0 {
				s.notified = at(test.notified)
			}
			if test.valid > 0 {
				s.valid = at(test.valid)
			}
			var got Outcome
			a.add(&got, "k", at(expiry), s)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestSamplerStopsAfterReportsOrTimeout(t *testing.T) {
	t.Parallel()
	s := NewSampler()
	defer s.Close()
	var over atomic.Bool
	notified, silent := &sight{signal: over.Load}, &sight{signal: func() bool { return false }}
	first := s.watch([]*sight{notified}, time.Now().Add(time.Hour))
	second := s.watch([]*sight{silent}, time.Now().Add(50*time.Millisecond))
	<-second
	assert.True(t, silent.notified.IsZero())
	assert.False(t, silent.valid.IsZero())
	select {
	case <-first:
		require.FailNow(t, "it is not over")
	default:
	}
	struck := time.Now()
	over.Store(true)
	<-first
	assert.True(t, notified.notified.After(struck))
	assert.Positive(t, notified.gap())
}

func TestTableHasRowPerClientAndLease(t *testing.T) {
	t.Parallel()
	outcomes := Merge([]Outcome{
		{Client: "a", Tells: "x", Way: "frozen", Lease: 5000, Before: []float64{500_000, -1000, -200}, Gap: []float64{100, 0, 300}, Never: 1},
		{Client: "a", Tells: "x", Way: "frozen", Lease: 2000, Before: []float64{200_000}, Gap: []float64{100}},
		{Client: "a", Tells: "x", Way: "frozen", Lease: 5000, Before: []float64{400_000}, Gap: []float64{200}, GivenBack: 1, Rival: []float64{2000}},
		{Client: "a", Tells: "y", Way: "frozen", Lease: 5000, Before: []float64{400_000}, Gap: []float64{200}, GivenBack: 1, Rival: []float64{2000}},
		{Client: "a", Tells: "x", Way: "deleted", Lease: 2000, Before: []float64{-600_000}, Gap: []float64{100}},
	})
	sums := Tables(outcomes)
	assert.Equal(t, [][]string{{"a, x", "5", "1", "200 / 200", "-1 / 200"}, {"a, y", "1", "0", "", "400 / 400"}}, sums[0].Rows)
	assert.Equal(t, [][]string{
		{"`frozen`", "2", "200 / 200", ""},
		{"`frozen`", "5", "-1 / 200 (1 late, 1 unclear)", "400 / 400"},
	}, sums[1].Rows)
	assert.Equal(t, [][]string{{"`deleted`", "2", "600 / 600"}}, sums[2].Rows)
	notes := Notes(outcomes)
	assert.Contains(t, notes, "6 holds.")
	assert.Contains(t, notes, "found 1 keys free")
	assert.Contains(t, notes, "notified holders: 1.")
}
