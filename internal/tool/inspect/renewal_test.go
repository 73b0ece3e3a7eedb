package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
)

func TestRenewalIsSeenByTheClockOfTheLooksAndNotByTheTTLAlone(t *testing.T) {
	t.Parallel()
	at := func(sent, answered, left time.Duration) *Snapshot {
		zero := time.Unix(0, 0)
		return &Snapshot{TTL: left, Asked: zero.Add(sent), Answered: zero.Add(answered)}
	}
	first := at(0, 100*time.Millisecond, 10*time.Second)
	for _, c := range []struct {
		later *Snapshot
		rose  bool
	}{
		{at(time.Second, time.Second, 9*time.Second), false},
		{at(time.Second, time.Second, 9100*time.Millisecond), false}, // it was looked at after 100 ms
		{at(time.Second, time.Second, 9200*time.Millisecond), true},
		{at(4*time.Second, 4*time.Second, 8*time.Second), true}, // renewed between the looks
		{at(time.Second, time.Second, 30*time.Second), true},
		{at(time.Second, 9*time.Second, 5*time.Second), false},
		{at(20*time.Second, 20*time.Second, redlatch.NoTTL), false},
	} {
		require.Equal(t, c.rose, Renewed(first.TTL, c.later.TTL, c.later.Asked.Sub(first.Answered)), "%v", c.later.TTL)
	}
	require.Equal(t, 11*time.Second, RenewalDue(30*time.Second))
}

func TestALeaseIsRenewedWhenItWasSeenToBeSetAnew(t *testing.T) {
	t.Parallel()
	look := func(second int, owner, count string, left time.Duration) Snapshot {
		at := time.Unix(int64(second), 0)
		return Snapshot{Asked: at, Answered: at.Add(10 * time.Millisecond), TTL: left, Holders: []Holder{{Owner: owner, Count: Count(count)}}}
	}
	const s = time.Second
	for what, c := range map[string]struct {
		looks []Snapshot
		want  string
	}{
		"once":             {[]Snapshot{look(0, "a", "1", 30*s)}, RenewedUnknown},
		"not due yet":      {[]Snapshot{look(0, "a", "1", 30*s), look(10, "a", "1", 20*s)}, RenewedUnknown},
		"not when due":     {[]Snapshot{look(0, "a", "1", 30*s), look(11, "a", "1", 19*s)}, RenewedNo},
		"set anew":         {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "1", 29*s)}, RenewedYes},
		"set anew, not up": {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "1", 20*s)}, RenewedYes},
		"set anew before":  {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "1", 29*s), look(2, "a", "1", 28*s)}, RenewedYes},
		"entered again":    {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "2", 30*s)}, RenewedUnknown},
		"another's":        {[]Snapshot{look(0, "a", "1", 20*s), look(1, "b", "1", 30*s)}, RenewedUnknown},
		"without a lease":  {[]Snapshot{look(0, "a", "1", redlatch.NoTTL)}, ""},
		"free meanwhile": {
			[]Snapshot{look(0, "a", "1", 20*s), {}, look(2, "a", "1", 30*s)}, RenewedUnknown,
		},
	} {
		var r Renewal
		for _, l := range c.looks {
			r.See(&l)
		}
		require.Equal(t, c.want, r.Known(), what)
	}
}

func TestALeaseThatIsNotRenewedAnyMoreIsNotCalledRenewed(t *testing.T) {
	t.Parallel()
	const s = time.Second
	var r Renewal
	look := func(second int, count string, left time.Duration) string {
		at := time.Unix(int64(second), 0)
		r.See(&Snapshot{Asked: at, Answered: at, TTL: left, Holders: []Holder{{Owner: "A", Count: Count(count)}}})
		return r.Known()
	}
	require.Equal(t, RenewedUnknown, look(0, "1", 25*s))
	require.Equal(t, RenewedUnknown, look(4, "1", 21*s))
	require.Equal(t, RenewedYes, look(5, "1", 30*s))
	require.Equal(t, RenewedYes, look(15, "1", 20*s))
	require.Equal(t, RenewedNo, look(16, "1", 19*s), "eleven seconds after a lease of thirty was set")
	require.Equal(t, RenewedYes, look(17, "1", 30*s))
	require.Equal(t, RenewedUnknown, look(18, "2", 30*s), "entered again")
	require.Empty(t, look(19, "2", redlatch.NoTTL))
}
