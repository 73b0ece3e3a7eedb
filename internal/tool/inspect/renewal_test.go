package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

func TestRenewalIsSeenByTheClockOfTheLooksAndNotByTheTTLAlone(t *testing.T) {
	t.Parallel()
	at := func(sent, answered, left time.Duration) *Snapshot {
		zero := time.Unix(0, 0)
		return &Snapshot{Inspection: &admin.Inspection{TTL: left}, Asked: zero.Add(sent), Answered: zero.Add(answered)}
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
		require.Equal(t, c.rose, first.RenewedBy(c.later), "%v", c.later.Inspection.TTL)
	}
	require.Equal(t, 11*time.Second, RenewalDue(30*time.Second))
}
