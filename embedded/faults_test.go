package embedded

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestFailWithAnswersEveryCommandUntilHealed(t *testing.T) {
	t.Parallel()
	const loading = "LOADING Redis is loading the dataset in memory"
	s := start(t, WithInProcess())
	c := dial(t, s)
	s.FailWith(loading)
	for _, cmd := range [][]any{{"SET", "k", "v"}, {"SUBSCRIBE", "ch"}, {"EVAL", "return 1", 0}} {
		_, err := c.Do(cmd[0].(string), cmd[1:]...)
		require.Equal(t, redis.Error(loading), err)
	}
	s.Heal()
	require.Nil(t, do(t, c, "GET", "k"))
}

func TestLoseRepliesRunsTheCommandAndCutsTheConnection(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	s.LoseReplies(2)
	for range 2 {
		_, err := dial(t, s).Do("INCR", "k")
		requireCut(t, err)
	}
	require.EqualValues(t, 3, do(t, dial(t, s), "INCR", "k"))

	s.LoseReplies(1)
	s.Heal()
	require.EqualValues(t, 4, do(t, dial(t, s), "INCR", "k"))
}

func TestLoseRepliesOverTCP(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, err := redis.DialURL(s.URL())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	s.LoseReplies(1)
	_, err = c.Do("INCR", "k")
	requireCut(t, err)
	require.EqualValues(t, 2, do(t, dial(t, s), "INCR", "k"))
}

func TestLoseRepliesKeepsErrorsAndSubscribers(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	sub, c := dial(t, s), dial(t, s)
	s.LoseReplies(1)
	subscribe(t, sub, "SUBSCRIBE", "ch")
	_, err := c.Do("EVALSHA", "0123456789012345678901234567890123456789", 0)
	require.ErrorContains(t, err, "NOSCRIPT")
	_, err = c.Do("EVAL", "return redis.call('publish', 'ch', 'm')", 0)
	requireCut(t, err)
	require.Equal(t, []string{"message", "ch", "m"}, receive(t, sub))
	require.Equal(t, "PONG", do(t, dial(t, s), "PING"))
}

func TestDropSubscribersKeepsOtherConnections(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	sub, psub, c := dial(t, s), dial(t, s), dial(t, s)
	subscribe(t, sub, "SUBSCRIBE", "ch")
	require.NoError(t, psub.Send("PSUBSCRIBE", "c*"))
	require.NoError(t, psub.Flush())
	_, err := psub.Receive()
	require.NoError(t, err)
	s.DropSubscribers()
	for _, gone := range []redis.Conn{sub, psub} {
		_, err = redis.ReceiveWithTimeout(gone, soon)
		requireCut(t, err)
	}
	require.Equal(t, "PONG", do(t, c, "PING"))
	require.Eventually(t, func() bool { return do(t, c, "PUBLISH", "ch", "m") == int64(0) }, soon, time.Millisecond)
	again := dial(t, s)
	subscribe(t, again, "SUBSCRIBE", "ch")
	require.EqualValues(t, 1, do(t, c, "PUBLISH", "ch", "m"))
}

func TestDropConnectionsCutsAllAndTakesNewOnes(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	conns := []redis.Conn{dial(t, s), dial(t, s)}
	subscribe(t, conns[0], "SUBSCRIBE", "ch")
	do(t, conns[1], "SET", "k", "v")
	s.DropConnections()
	for _, c := range conns {
		_, err := redis.ReceiveWithTimeout(c, soon)
		requireCut(t, err)
	}
	require.Equal(t, []byte("v"), do(t, dial(t, s), "GET", "k"))
}

func TestFastForwardAgesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, WithInProcess())
		c := dial(t, s)
		do(t, c, "SET", "k", "v", "PX", 10_000)
		s.FastForward(4 * time.Second)
		require.EqualValues(t, 6000, do(t, c, "PTTL", "k"))
		time.Sleep(time.Second)
		require.EqualValues(t, 5000, do(t, c, "PTTL", "k"))
	})
}

func TestSetTimeStopsTheClockAndTheZeroTimeLetsItRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, WithInProcess())
		c := dial(t, s)
		do(t, c, "SET", "k", "v", "PX", 10_000)
		ahead := time.Now().Add(3 * time.Second)
		s.SetTime(ahead)
		time.Sleep(time.Minute)
		require.EqualValues(t, 7000, do(t, c, "PTTL", "k"))
		require.EqualValues(t, ahead.Unix(), serverTime(t, c))

		s.SetTime(time.Time{})
		require.EqualValues(t, 7000, do(t, c, "PTTL", "k"))
		time.Sleep(time.Second)
		require.EqualValues(t, 6000, do(t, c, "PTTL", "k"))
		require.EqualValues(t, time.Now().Unix(), serverTime(t, c))
	})
}

// requireCut checks that err is that of a connection which the server has cut.
// A pipe says so in two ways.
func requireCut(t *testing.T, err error) {
	t.Helper()
	require.Truef(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe), "not cut: %v", err)
}

func serverTime(t *testing.T, c redis.Conn) int {
	t.Helper()
	parts, err := redis.Ints(c.Do("TIME"))
	require.NoError(t, err)
	return parts[0]
}
