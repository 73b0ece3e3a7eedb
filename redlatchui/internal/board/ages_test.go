package board

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// at is a moment some seconds after another.
func at(second float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(second * float64(time.Second)))
}

// seenAt is what a look has found: owners, and what the lease had left in seconds.
func seenAt(second, left float64, owners ...string) *look {
	l := &look{at: at(second), ttl: time.Duration(left * float64(time.Second))}
	for _, owner := range owners {
		l.holders = append(l.holders, listing.Holder{Owner: owner, Count: "1"})
	}
	return l
}

// since is the age of the first holder that a look shows, as a second.
func since(a *ages, l *look) (second float64, exact bool) {
	age := a.sees("x", l)[0]
	return age.Since.Sub(at(0)).Seconds(), age.Exact
}

func TestAHoldThatWasSeenToBeginHasATime(t *testing.T) {
	t.Parallel()
	var a ages
	a.sees("x", seenAt(0, 0))
	second, exact := since(&a, seenAt(2, 30, "A"))
	require.True(t, exact)
	require.InDelta(t, 2, second, 0)
	second, exact = since(&a, seenAt(60, 25, "A"))
	require.True(t, exact)
	require.InDelta(t, 2, second, 0)
	second, exact = since(&a, seenAt(61, 30, "B"))
	require.True(t, exact, "it has passed to another")
	require.InDelta(t, 61, second, 0)
	second, exact = since(&a, seenAt(70, 30, "C"))
	require.False(t, exact, "it was not looked at for long")
	require.InDelta(t, 70, second, 0)
}

func TestAScanThatHasFoundNoLockShowsWhenItWasTaken(t *testing.T) {
	t.Parallel()
	var a ages
	_, exact := since(&a, seenAt(0, 30, "A"))
	require.False(t, exact)
	a.ended(at(1), true)
	_, exact = since(&a, seenAt(3, 30, "A"))
	require.True(t, exact, "the scan in between has not found it")
	a = ages{}
	a.ended(at(1), false)
	_, exact = since(&a, seenAt(3, 30, "A"))
	require.False(t, exact, "the scan has not kept all locks")
}

// A lease that is renewed to 30 s had been set 10 s before it was first seen with 20 s.
func TestALeaseShowsHowLongALockIsHeldAtLeast(t *testing.T) {
	t.Parallel()
	var a ages
	second, exact := since(&a, seenAt(0, 20, "A"))
	require.False(t, exact)
	require.InDelta(t, 0, second, 0)
	second, exact = since(&a, seenAt(1, 30, "A"))
	require.False(t, exact)
	require.InDelta(t, -10, second, 0)
	second, _ = since(&a, seenAt(5, 26, "A"))
	require.InDelta(t, -10, second, 0)

	a = ages{}
	since(&a, seenAt(0, 5, "A"))
	second, _ = since(&a, seenAt(1, 60, "A"))
	require.InDelta(t, 0, second, 0, "it is another lease")

	a = ages{}
	since(&a, seenAt(0, 20, "A"))
	again := seenAt(1, 30, "A")
	again.holders[0].Count = "2"
	second, _ = since(&a, again)
	require.InDelta(t, 0, second, 0, "it has entered again, which sets the lease")

	a = ages{}
	since(&a, &look{at: at(0), ttl: redlatch.NoTTL, holders: []listing.Holder{{Owner: "A", Count: "1"}}})
	second, _ = since(&a, seenAt(1, 30, "A"))
	require.InDelta(t, 0, second, 0, "there was no lease")
}

func TestAnOwnerThatTakesTheLockAnewHoldsItSinceThen(t *testing.T) {
	t.Parallel()
	var a ages
	first := seenAt(0, 30, "A")
	first.token = 7
	since(&a, first)
	next := seenAt(2, 30, "A")
	next.token = 8
	second, exact := since(&a, next)
	require.True(t, exact)
	require.InDelta(t, 2, second, 0, "it has another token")
	next = seenAt(4, 30, "A")
	next.token, next.anew = 8, true
	second, _ = since(&a, next)
	require.InDelta(t, 4, second, 0, "a message shows it")
}

// A reader that comes beside others changes nothing about these.
func TestEachReaderHasAnAgeOfItsOwn(t *testing.T) {
	t.Parallel()
	var a ages
	reads := func(second float64, owners ...string) []Age {
		l := seenAt(second, 30, owners...)
		l.shared = true
		return a.sees("x", l)
	}
	reads(0, "A")
	all := reads(2, "B", "A")
	require.Equal(t, []Age{{at(2), true}, {at(0), false}}, all)
	require.Equal(t, Age{at(0), false}, oldest(all))
	all = reads(4, "B")
	require.Equal(t, []Age{{at(2), true}}, all)
}

// A look that was slower than another one says nothing new.
func TestALateLookChangesNothing(t *testing.T) {
	t.Parallel()
	var a ages
	since(&a, seenAt(0, 30, "A"))
	a.sees("x", seenAt(3, 0))
	since(&a, seenAt(2, 28, "A"))
	second, exact := since(&a, seenAt(4, 30, "A"))
	require.True(t, exact)
	require.InDelta(t, 4, second, 0, "it was free in between")
}

func TestWhatWasSeenLongAgoIsForgotten(t *testing.T) {
	t.Parallel()
	var a ages
	since(&a, seenAt(0, 30, "A"))
	second, _ := since(&a, seenAt(200, 30, "A"))
	require.InDelta(t, 0, second, 0)
	second, exact := since(&a, seenAt(200+remembers.Seconds()+1, 30, "A"))
	require.False(t, exact)
	require.InDelta(t, 200+remembers.Seconds()+1, second, 0)

	var p presence
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(0)))
	require.Equal(t, Dead, p.sees("x", "A", 0, at(1)))
	require.Equal(t, Dead, p.sees("x", "A", 0, at(200)))
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(200+remembers.Seconds()+1)))
	require.Equal(t, Alive, p.sees("x", "A", 1, at(1000)))
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(1001)))
}
