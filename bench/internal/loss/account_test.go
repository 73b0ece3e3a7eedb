package loss

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrialIsAccountedForByWhatTheServerAndTheRivalSay(t *testing.T) {
	t.Parallel()
	zero := time.UnixMilli(1_700_000_000_000)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	const expiry, patience = 1000, 5000
	tests := map[string]struct {
		notified, valid int // 0: never
		free            int // 0: no rival
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

func TestSamplerLooksUntilAllHaveReportedOrItsTimeIsUp(t *testing.T) {
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

func TestSamplerThatIsClosedEndsItsWatches(t *testing.T) {
	t.Parallel()
	s := NewSampler()
	never := func() bool { return false }
	before := s.watch([]*sight{{signal: never}}, time.Now().Add(time.Hour))
	s.Close()
	<-before
	<-s.watch([]*sight{{signal: never}}, time.Now().Add(time.Hour))
}

func TestStageCleansUpInReverseAndTellsWhatFailed(t *testing.T) {
	t.Parallel()
	var order []int
	err := perform(func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { order = append(order, 1) })
		tb.Cleanup(func() {
			order = append(order, 2)
			tb.Cleanup(func() { order = append(order, 3) })
		})
		tb.Fatalf("no luck: %d", 13)
		order = append(order, 0)
	})
	require.EqualError(t, err, "no luck: 13")
	require.Equal(t, []int{2, 1, 3}, order)
	require.NoError(t, perform(func(testing.TB) {}))
}

func TestTablesHaveARowForEachClientAndLease(t *testing.T) {
	t.Parallel()
	outcomes := Merge([]Outcome{
		{Client: "a", Tells: "x", Way: "frozen", Lease: 5000, Before: []float64{500_000, -1000, -200}, Gap: []float64{100, 0, 300}, Never: 1},
		{Client: "a", Tells: "x", Way: "frozen", Lease: 2000, Before: []float64{200_000}, Gap: []float64{100}},
		{Client: "a", Tells: "x", Way: "frozen", Lease: 5000, Before: []float64{400_000}, Gap: []float64{200}, GivenBack: 1, Rival: []float64{2000}},
		{Client: "a", Tells: "y", Way: "frozen", Lease: 5000, Before: []float64{400_000}, Gap: []float64{200}, GivenBack: 1, Rival: []float64{2000}},
		{Client: "a", Tells: "x", Way: "deleted", Lease: 2000, Before: []float64{-600_000}, Gap: []float64{100}},
	})
	tables := Tables(outcomes)
	require.Len(t, tables, 2)
	assert.Equal(t, [][]string{
		{"2", "a, x", "1", "0", "0", "0", "200", "200", "200", "200", "200", "0.10"},
		{"5", "a, x", "4", "1", "1", "1", "-1", "-1", "200", "497", "500", "0.30"},
		{"5", "a, y", "1", "0", "0", "0", "400", "400", "400", "400", "400", "0.20"},
	}, tables[0].Rows)
	assert.Equal(t, [][]string{{"2", "a, x", "1", "0", "600", "600", "600", "600", "0.10"}}, tables[1].Rows)
	for _, table := range tables {
		assert.Len(t, table.Rows[0], len(table.Head))
	}
	sums := Overview(outcomes)
	assert.Equal(t, [][]string{{"a, x", "5", "1", "200 / 200", "-1 / 200"}, {"a, y", "1", "0", "", "400 / 400"}}, sums[0].Rows)
	assert.Equal(t, [][]string{
		{"`frozen`", "2", "200 / 200", ""},
		{"`frozen`", "5", "-1 / 200 (1 late, 1 unclear)", "400 / 400"},
	}, sums[1].Rows)
	assert.Equal(t, [][]string{{"`deleted`", "2", "600 / 600"}}, sums[2].Rows)
	notes := Notes(outcomes)
	assert.Contains(t, notes, "6 holds.")
	assert.Contains(t, notes, "found 1 keys free")
	assert.Contains(t, notes, "gave them back: 1.")
}
