package board

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func at(second float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(second * float64(time.Second)))
}

func seenAt(second, left float64, owners ...string) *look {
	l := &look{at: at(second), ttl: time.Duration(left * float64(time.Second))}
	for _, owner := range owners {
		l.holders = append(l.holders, inspect.Holder{Owner: owner, Count: "1"})
	}
	return l
}

func since(a *ages, l *look) (second float64, exact bool) {
	all, _ := a.sees("x", l)
	age := all[0]
	return age.Since.Sub(at(0)).Seconds(), age.Exact
}

// sighted is a look, and the age that it shows for the first holder.
type sighted struct {
	look  *look
	since float64
	exact bool
}

func TestAgesOfHolds(t *testing.T) {
	t.Parallel()
	token := func(l *look, token int64, anew bool) *look { l.token, l.anew = token, anew; return l }
	entered := seenAt(1, 30, "A")
	entered.holders[0].Count = "2"
	eternal := seenAt(0, 0, "A")
	eternal.ttl = redlatch.NoTTL
	for what, looks := range map[string][]sighted{
		"seen to begin": {
			{seenAt(0, 0), 0, false}, {seenAt(2, 30, "A"), 2, true}, {seenAt(60, 25, "A"), 2, true},
			{seenAt(61, 30, "B"), 61, true}, {seenAt(70, 30, "C"), 70, false},
		},
		"renewal":         {{seenAt(0, 20, "A"), 0, false}, {seenAt(1, 30, "A"), -10, false}, {seenAt(5, 26, "A"), -10, false}},
		"another lease":   {{seenAt(0, 5, "A"), 0, false}, {seenAt(1, 60, "A"), 0, false}},
		"entered again":   {{seenAt(0, 20, "A"), 0, false}, {entered, 0, false}},
		"no lease before": {{eternal, 0, false}, {seenAt(1, 30, "A"), 0, false}},
		"taken anew": {
			{token(seenAt(0, 30, "A"), 7, false), 0, false}, {token(seenAt(2, 30, "A"), 8, false), 2, true}, {token(seenAt(4, 30, "A"), 8, true), 4, true},
		},
		"late look": {{seenAt(0, 30, "A"), 0, false}, {seenAt(3, 0), 0, false}, {seenAt(2, 28, "A"), 2, false}, {seenAt(4, 30, "A"), 4, true}},
		"forgotten": {{seenAt(0, 30, "A"), 0, false}, {seenAt(200, 30, "A"), 0, false}, {seenAt(201+remembers.Seconds(), 30, "A"), 201 + remembers.Seconds(), false}},
	} {
		var a ages
		for i, l := range looks {
			all, _ := a.sees("x", l.look)
			if len(l.look.holders) > 0 {
				require.InDelta(t, l.since, all[0].Since.Sub(at(0)).Seconds(), 0, "%s, look %d", what, i)
				require.Equal(t, l.exact, all[0].Exact, "%s, look %d", what, i)
			}
		}
	}
}

func TestEmptyScanShowsItsTime(t *testing.T) {
	t.Parallel()
	var a ages
	_, exact := since(&a, seenAt(0, 30, "A"))
	require.False(t, exact)
	a.ended(at(1), time.Time{}, true, nil)
	_, exact = since(&a, seenAt(3, 30, "A"))
	require.True(t, exact, "the scan in between has not found it")
	a = ages{}
	a.ended(at(1), time.Time{}, false, nil)
	_, exact = since(&a, seenAt(3, 30, "A"))
	require.False(t, exact, "the scan has not kept all locks")
}

func TestReadersHaveSeparateAges(t *testing.T) {
	t.Parallel()
	var a ages
	reads := func(second float64, owners ...string) []Age {
		l := seenAt(second, 30, owners...)
		l.shared = true
		all, _ := a.sees("x", l)
		return all
	}
	reads(0, "A")
	all := reads(2, "B", "A")
	require.Equal(t, []Age{{at(2), true}, {at(0), false}}, all)
	require.Equal(t, Age{at(0), false}, oldest(all))
	all = reads(4, "B")
	require.Equal(t, []Age{{at(2), true}}, all)
}

func TestAbsenceIsForgotten(t *testing.T) {
	t.Parallel()
	var p presence
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(0)))
	require.Equal(t, Dead, p.sees("x", "A", 0, at(1)))
	require.Equal(t, Dead, p.sees("x", "A", 0, at(200)))
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(200+remembers.Seconds()+1)))
	require.Equal(t, Alive, p.sees("x", "A", 1, at(1000)))
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(1001)))
}

func TestFullRecordCountsNothingTwice(t *testing.T) {
	t.Parallel()
	a := ages{locks: map[uint64]sighting{}}
	a.ended(at(0), time.Time{}, true, nil)
	for key := range uint64(dated) {
		a.locks[key] = sighting{at: a.moment(at(1000))}
	}
	sum := int32(0)
	for second := range 5 {
		l := seenAt(float64(second)+.5, 30, "A")
		l.last = at(float64(second))
		_, c := a.sees("new", l)
		sum += c.acquired
		a.ended(at(float64(second)+1), l.last, true, func(uint64, uint64, changes) { t.Error("all locks are held") })
	}
	require.EqualValues(t, 1, sum)
	require.Len(t, a.locks, dated)
}

func TestForgottenHoldIsNotAcquired(t *testing.T) {
	t.Parallel()
	var a ages
	a.sees("x", seenAt(0, 30, "A"))
	a.ended(at(0), time.Time{}, true, nil)
	l := seenAt(remembers.Seconds()+1, 30, "A")
	l.last = at(0)
	_, c := a.sees("x", l)
	require.Zero(t, c)
}

func TestLeaseThatEndsInScanIsNotExpired(t *testing.T) {
	t.Parallel()
	for began, want := range map[float64]int32{29: 0, 31: 1} {
		var a ages
		a.sees("x", seenAt(0, 30, "A"))
		a.sees("x", seenAt(28, 2, "A"))
		sum := int32(0)
		a.ended(at(began), at(28), true, func(_, _ uint64, c changes) { sum += c.expired })
		require.Equal(t, want, sum)
	}
}

func TestPartlySeenHoldsAreBounded(t *testing.T) {
	t.Parallel()
	var a ages
	for i := range 2 * mostHolds {
		l := seenAt(float64(i), 30, fmt.Sprint(i))
		l.more = true
		a.sees("x", l)
	}
	require.Len(t, a.locks[hash("x")].holds, mostHolds)
}
