package fence_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = 30 * time.Second

// pausedAndNext returns the tokens of a holder whose lease expired and of the next holder.
func pausedAndNext(t *testing.T, s *redistest.Server) (paused, next int64) {
	t.Helper()
	name := redistest.Key(t)
	lock := func(opts ...rlock.Option) int64 {
		client, err := redlatch.Open(t.Context(), s.URL())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		hold, err := rfencedlock.New(client, name).Lock(ctx, opts...)
		require.NoError(t, err)
		return hold.Token()
	}
	paused = lock(rlock.WithLease(2 * time.Second))
	return paused, lock(rlock.WithLease(time.Minute))
}

// guardOn returns a guard that uses a plain Redis connection.
func guardOn(t *testing.T, s *redistest.Server) fence.Redis {
	t.Helper()
	return fence.Redis{Eval: func(_ context.Context, script string, keys []string, args ...any) (any, error) {
		c := s.Dial(t)
		all := []any{script, len(keys)}
		for _, key := range keys {
			all = append(all, key)
		}
		return c.Do("EVAL", append(all, args...)...)
	}}
}

func TestU12APausedHolderComesBackToRedisAndIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	guard, key := guardOn(t, s), redistest.Key(t)
	paused, next := pausedAndNext(t, s)
	reply, err := guard.Do(t.Context(), paused, "SET", key, "a")
	require.NoError(t, err)
	require.Equal(t, "OK", reply)
	_, err = guard.Do(t.Context(), next, "SET", key, "b")
	require.NoError(t, err)
	_, err = guard.Do(t.Context(), paused, "SET", key, "a")
	require.ErrorIs(t, err, fence.ErrLate)
	var late *fence.LateError
	require.ErrorAs(t, err, &late)
	require.Equal(t, fence.LateError{Resource: key, Token: paused, Highest: next}, *late)
	require.Equal(t, []byte("b"), s.Do(t, "GET", key))
	reply, err = guard.Do(t.Context(), next, "APPEND", key, "b")
	require.NoError(t, err)
	require.EqualValues(t, 2, reply)
}

// Tokens are compared as integers, not as floating-point numbers or strings.
func TestTheRedisGuardComparesTokensExactly(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	guard := guardOn(t, s)
	for _, pair := range [][2]int64{{9, 10}, {1<<53 + 1, 1<<53 + 2}, {1<<62 - 1, 1 << 62}, {99, 1<<63 - 1}} {
		key := redistest.Key(t) + strconv.FormatInt(pair[1], 10)
		_, err := guard.Do(t.Context(), pair[1], "SET", key, "b")
		require.NoError(t, err)
		_, err = guard.Do(t.Context(), pair[0], "SET", key, "a")
		require.ErrorIs(t, err, fence.ErrLate, "%v", pair)
		_, err = guard.Do(t.Context(), pair[1], "SET", key, "c")
		require.NoError(t, err, "%v", pair)
	}
}

func TestACommandThatFailsLeavesTheHighestToken(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	guard, key := guardOn(t, s), "{"+redistest.Key(t)+"}of"
	_, err := guard.Do(t.Context(), 1, "SET", key, "text")
	require.NoError(t, err)
	_, err = guard.Do(t.Context(), 5, "INCR", key)
	require.Error(t, err)
	_, err = guard.Do(t.Context(), 2, "GETDEL", key)
	require.NoError(t, err, "5 was not counted")
	reply, err := guard.Do(t.Context(), 2, "GET", key)
	require.NoError(t, err)
	require.Nil(t, reply)
	_, err = guard.Do(t.Context(), 0, "SET", key, "none")
	require.ErrorIs(t, err, fence.ErrNoToken)
	last, err := redis.Int64(s.Do(t, "GET", fence.TokenKey(key)), nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, last)
}

// put sends a request with a token, "" for none, and returns the status.
func put(t *testing.T, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set(fence.Header, token)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

func TestU12APausedHolderComesBackToAnHTTPServerAndIsRefused(t *testing.T) {
	t.Parallel()
	paused, next := pausedAndNext(t, redistest.Shared(t))
	server := httptest.NewServer(&fence.Handler{Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	t.Cleanup(server.Close)
	url, a, b := server.URL+"/orders/42", strconv.FormatInt(paused, 10), strconv.FormatInt(next, 10)
	require.Equal(t, http.StatusOK, put(t, url, a))
	require.Equal(t, http.StatusOK, put(t, url, b))
	require.Equal(t, http.StatusPreconditionFailed, put(t, url, a))
	require.Equal(t, http.StatusOK, put(t, url, b))
	require.Equal(t, http.StatusOK, put(t, server.URL+"/orders/43", a), "another resource")
	for _, none := range []string{"", "0", "-1", "many", "1.5"} {
		require.Equal(t, http.StatusPreconditionRequired, put(t, url, none), none)
	}
}

// An accepted request may still write, so a higher token waits for its end. Lower tokens are late from
// then on.
func TestAHigherTokenWaitsForARequestThatWasAccepted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards served
	var served []string
	began, goOn := make(chan string, 3), make(chan struct{})
	server := httptest.NewServer(&fence.Handler{
		Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			token := r.Header.Get(fence.Header)
			began <- token
			if token == "5" {
				<-goOn
			}
			mu.Lock()
			defer mu.Unlock()
			served = append(served, token)
		}),
		Resource: func(*http.Request) string { return "one" },
	})
	t.Cleanup(server.Close)
	statuses := make(chan int, 2)
	send := func(token string) { statuses <- put(t, server.URL, token) }
	go send("5")
	require.Equal(t, "5", <-began)
	go send("6")
	require.Eventually(t, func() bool { return put(t, server.URL, "4") == http.StatusPreconditionFailed }, soon, time.Millisecond)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, nil)
		require.NoError(t, err)
		fence.SetHeader(r.Header, 5)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusPreconditionFailed
	}, soon, 10*time.Millisecond, "6 has been seen: 5 is late, also while 6 waits")
	mu.Lock()
	require.NotContains(t, served, "6", "6 has overtaken 5")
	mu.Unlock()
	close(goOn)
	require.Equal(t, http.StatusOK, <-statuses)
	require.Equal(t, http.StatusOK, <-statuses)
	require.Contains(t, served, "6")
	require.Equal(t, "6", served[len(served)-1])
}

func TestEachKeyHasATokenKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, key := range []string{"x", "{x}", "{x}y", "x{y}", ":x", ":{x}", "{", "a{b"} {
		other, taken := seen[fence.TokenKey(key)]
		require.False(t, taken, "%q and %q", key, other)
		seen[fence.TokenKey(key)] = key
	}
}
