package failover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseSentinelHello(t *testing.T) {
	t.Parallel()
	c, ok := parseHello("127.0.0.1,26379,cafe,3,mymaster,10.0.0.7,6379,2")
	require.True(t, ok)
	require.Equal(t, claim{name: "mymaster", addr: "10.0.0.7:6379", epoch: 2}, c)
	c, ok = parseHello("::1,26379,cafe,3,m,fe80::1,6379,2")
	require.True(t, ok)
	require.Equal(t, "[fe80::1]:6379", c.addr)
	for _, text := range []string{"", "0", ",,,,,,,", "a,b,c,d,e,f,g", "a,b,c,d,e,f,g,h,1", "a,b,c,d,e,f,g,x"} {
		_, ok := parseHello(text)
		require.False(t, ok, text)
	}
}

func TestOnlyNewerEpochWithNewMasterIsSwitch(t *testing.T) {
	t.Parallel()
	s, now := claims{}, time.Now()
	for _, step := range []struct {
		c               claim
		first, switched bool
	}{
		{claim{"m", "a:1", 3}, true, false},
		{claim{"m", "a:1", 3}, false, false},
		{claim{"m", "b:1", 2}, false, false}, // an older claim
		{claim{"other", "b:1", 9}, true, false},
		{claim{"m", "b:1", 4}, false, true},
		{claim{"m", "a:1", 3}, false, false}, // a Sentinel that does not know it yet
		{claim{"m", "b:1", 6}, false, false}, // an aborted failover
		{claim{"m", "a:1", 5}, false, false},
		{claim{"m", "a:1", 7}, false, true},
	} {
		first, switched := s.take(step.c, now)
		require.Equal(t, step.first, first, step.c)
		require.Equal(t, step.switched, switched, step.c)
	}
}

func TestUnconfirmedEpochIsForgotten(t *testing.T) {
	t.Parallel()
	s, now := claims{}, time.Now()
	for _, step := range []struct {
		after           time.Duration
		c               claim
		first, switched bool
	}{
		{0, claim{"m", "a:1", 5}, true, false},
		{9 * time.Second, claim{"m", "a:1", 0}, false, false},
		{0, claim{"m", "a:1", 5}, false, false}, // it is repeated
		{9 * time.Second, claim{"m", "b:1", 4}, false, false},
		{time.Second, claim{"m", "b:1", 0}, true, false}, // it is not
		{0, claim{"m", "a:1", 1}, false, true},
		{time.Hour, claim{"m", "a:1", 1}, false, false},
		{time.Hour, claim{"m", "b:1", 2}, false, true},
	} {
		now = now.Add(step.after)
		first, switched := s.take(step.c, now)
		require.Equal(t, step.first, first, step)
		require.Equal(t, step.switched, switched, step)
	}
}
