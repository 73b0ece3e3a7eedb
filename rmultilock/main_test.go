package rmultilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = callers.Soon

var (
	connect = callers.Connect
	within  = callers.Within
)

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

func takeOne(t *testing.T, c *redlatch.Client, name string, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := rlock.New(c, name).Lock(within(t), opts...)
	require.NoError(t, err)
	return h
}

// free requires that no key with the prefix of the first name remains.
func free(t *testing.T, s redistest.Target, names []string) {
	t.Helper()
	assert.Eventually(t, func() bool { return len(left(t, s, names)) == 0 }, soon, 5*time.Millisecond, "locks remain on the server")
}

func left(t *testing.T, s redistest.Target, names []string) []any {
	t.Helper()
	keys, _ := s.Do(t, "KEYS", "*"+names[0][:len(names[0])-4]+"*").([]any)
	return keys
}

type acquired = callers.Acquired[*rmultilock.Hold]

func later(ctx context.Context, l *rmultilock.Lock, opts ...rlock.Option) <-chan acquired {
	return callers.Later(func() (*rmultilock.Hold, error) { return l.Lock(ctx, opts...) })
}

func must(t *testing.T, came <-chan acquired) *rmultilock.Hold {
	t.Helper()
	return callers.Must(t, came, soon)
}
