package program

import (
	"encoding/json"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// OK runs redlatch and returns its standard output. The test fails if redlatch fails.
func OK(t *testing.T, url string, args ...string) string {
	t.Helper()
	got := Finish(t, url, args...)
	require.Equal(t, 0, got.Code, "%q: %s", args, got.Stderr)
	return got.Stdout
}

// Fails runs redlatch with a command that does not start another process. It requires the given exit code and a single
// line on standard error that contains says and does not contain the password.
func Fails(t *testing.T, url string, code int, says string, args ...string) Outcome {
	t.Helper()
	got := finish(t, url, args, "demo", "hold", "release", "__guard")
	require.Equal(t, code, got.Code, "%q: %s", args, got.Stderr)
	OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, says, "%q", args)
	require.NotContains(t, got.Stderr, "sesame", "%q", args)
	return got
}

// Subscribe returns a connection that is subscribed to the channels.
func Subscribe(t *testing.T, s redistest.Target, channels ...string) redis.Conn {
	t.Helper()
	c := s.Dial(t)
	for _, channel := range channels {
		require.NoError(t, c.Send("SUBSCRIBE", channel))
	}
	require.NoError(t, c.Flush())
	for range channels {
		_, err := redis.ReceiveWithTimeout(c, Soon)
		require.NoError(t, err)
	}
	return c
}

// AwaitSubscribers waits until n connections are subscribed to a channel.
func AwaitSubscribers(t *testing.T, s redistest.Target, channel string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		counts, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", channel), nil)
		require.NoError(t, err)
		return counts[1] == int64(n)
	}, 2*Soon, PollEvery)
}

// Open returns a client that is closed when the test ends.
func Open(t *testing.T, s redistest.Target, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// JSON parses a JSON object.
func JSON(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &object), text)
	return object
}
