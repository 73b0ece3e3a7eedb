package sentinel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHelloOfASentinel(t *testing.T) {
	t.Parallel()
	c, ok := Parse("127.0.0.1,26379,cafe,3,mymaster,10.0.0.7,6379,2")
	require.True(t, ok)
	require.Equal(t, Claim{Name: "mymaster", Addr: "10.0.0.7:6379", Epoch: 2}, c)
	c, ok = Parse("::1,26379,cafe,3,m,fe80::1,6379,2")
	require.True(t, ok)
	require.Equal(t, "[fe80::1]:6379", c.Addr)
	for _, text := range []string{"", "0", ",,,,,,,", "a,b,c,d,e,f,g", "a,b,c,d,e,f,g,h,1", "a,b,c,d,e,f,g,x"} {
		_, ok := Parse(text)
		require.False(t, ok, text)
	}
}

func TestOnlyALaterWordOfAnotherMasterIsASwitch(t *testing.T) {
	t.Parallel()
	s, now := Said{}, time.Now()
	for _, step := range []struct {
		c               Claim
		first, switched bool
	}{
		{Claim{"m", "a:1", 3}, true, false},
		{Claim{"m", "a:1", 3}, false, false},
		{Claim{"m", "b:1", 2}, false, false}, // from before
		{Claim{"other", "b:1", 9}, true, false},
		{Claim{"m", "b:1", 4}, false, true},
		{Claim{"m", "a:1", 3}, false, false}, // a Sentinel that has not heard of it yet
		{Claim{"m", "b:1", 6}, false, false}, // a fail-over that came to nothing
		{Claim{"m", "a:1", 5}, false, false},
		{Claim{"m", "a:1", 7}, false, true},
	} {
		first, switched := s.Take(step.c, now)
		require.Equal(t, step.first, first, step.c)
		require.Equal(t, step.switched, switched, step.c)
	}
}

func TestAnEpochThatNoSentinelRepeatsIsForgotten(t *testing.T) {
	t.Parallel()
	s, now := Said{}, time.Now()
	for _, step := range []struct {
		after           time.Duration
		c               Claim
		first, switched bool
	}{
		{0, Claim{"m", "a:1", 5}, true, false},
		{9 * time.Second, Claim{"m", "a:1", 0}, false, false},
		{0, Claim{"m", "a:1", 5}, false, false}, // it is repeated
		{9 * time.Second, Claim{"m", "b:1", 4}, false, false},
		{time.Second, Claim{"m", "b:1", 0}, true, false}, // it is not
		{0, Claim{"m", "a:1", 1}, false, true},
		{time.Hour, Claim{"m", "a:1", 1}, false, false},
		{time.Hour, Claim{"m", "b:1", 2}, false, true},
	} {
		now = now.Add(step.after)
		first, switched := s.Take(step.c, now)
		require.Equal(t, step.first, first, step)
		require.Equal(t, step.switched, switched, step)
	}
}
