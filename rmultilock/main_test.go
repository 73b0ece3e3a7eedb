package rmultilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon is far more than anything takes that is waited for.
const soon = 30 * time.Second

func connect(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// names are n names of the test's own.
func names(t *testing.T, n int) []string {
	t.Helper()
	base := redistest.Key(t)
	var all []string
	for i := range n {
		all = append(all, base+":"+string(rune('a'+i/26/26))+string(rune('a'+i/26%26))+string(rune('a'+i%26)))
	}
	return all
}

func take(t *testing.T, l *rmultilock.Lock, opts ...rlock.Option) *rmultilock.Hold {
	t.Helper()
	h, err := l.Lock(within(t), opts...)
	require.NoError(t, err)
	require.NoError(t, h.Err())
	return h
}

// takeOne takes one plain lock.
func takeOne(t *testing.T, c *redlatch.Client, name string, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := rlock.New(c, name).Lock(within(t), opts...)
	require.NoError(t, err)
	return h
}

// free holds that nothing is left on the server of locks whose names begin with that of the first.
func free(t *testing.T, s *redistest.Server, names []string) {
	t.Helper()
	assert.Eventually(t, func() bool { return len(left(t, s, names)) == 0 }, soon, 5*time.Millisecond, "locks are left on the server")
}

func left(t *testing.T, s *redistest.Server, names []string) []any {
	t.Helper()
	keys, _ := s.Do(t, "KEYS", "*"+names[0][:len(names[0])-4]+"*").([]any)
	return keys
}

// listening waits until a connection listens to a lock.
func listening(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		pair, _ := s.Do(t, "PUBSUB", "NUMSUB", codec.LockChannel(name)).([]any)
		return len(pair) == 2 && pair[1] == int64(1)
	}, soon, 5*time.Millisecond, "it does not listen")
}

// acquired is what a waiter ends with.
type acquired struct {
	hold *rmultilock.Hold
	err  error
}

// later waits for the locks on a goroutine of its own.
func later(ctx context.Context, l *rmultilock.Lock, opts ...rlock.Option) <-chan acquired {
	came := make(chan acquired, 1)
	go func() {
		h, err := l.Lock(ctx, opts...)
		came <- acquired{h, err}
	}()
	return came
}

func must(t *testing.T, came <-chan acquired) *rmultilock.Hold {
	t.Helper()
	select {
	case a := <-came:
		require.NoError(t, a.err)
		return a.hold
	case <-time.After(soon):
		require.FailNow(t, "it does not come")
		return nil
	}
}
