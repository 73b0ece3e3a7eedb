package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rlock"
)

func TestRenewalIsSeenByTheClockOfTheLooksAndNotByTheTTLAlone(t *testing.T) {
	t.Parallel()
	at := func(sent, answered, left time.Duration) *sighting {
		zero := time.Unix(0, 0)
		return &sighting{in: &rlock.Inspection{TTL: left}, asked: zero.Add(sent), answered: zero.Add(answered)}
	}
	first := at(0, 100*time.Millisecond, 10*time.Second)
	for _, c := range []struct {
		later *sighting
		rose  bool
	}{
		{at(time.Second, time.Second, 9*time.Second), false},
		{at(time.Second, time.Second, 9100*time.Millisecond), false}, // it was looked at after 100 ms
		{at(time.Second, time.Second, 9200*time.Millisecond), true},
		{at(4*time.Second, 4*time.Second, 8*time.Second), true}, // renewed between the looks
		{at(time.Second, time.Second, 30*time.Second), true},
		{at(time.Second, 9*time.Second, 5*time.Second), false},
		{at(20*time.Second, 20*time.Second, codec.NoTTL), false},
	} {
		require.Equal(t, c.rose, first.roseTo(c.later), "%v", c.later.in.TTL)
	}
	require.Equal(t, 11*time.Second, renewalDue(30*time.Second))
}
