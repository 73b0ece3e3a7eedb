package fence_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// pausedAndNext returns the tokens of a holder whose lease expires and of the next holder. It must
// be called in a bubble.
func pausedAndNext(t *testing.T, s *redistest.MiniServer) (paused, next int64) {
	t.Helper()
	lock := func() int64 {
		hold, err := rfencedlock.New(callers.InProcess(t, s), "lock").Lock(t.Context(), rlock.WithLease(time.Minute))
		require.NoError(t, err)
		return hold.Token()
	}
	return lock(), lock()
}

// guardOn returns a guard that uses a plain Redis connection.
func guardOn(t *testing.T, s redistest.Target) fence.Redis {
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

func TestU12RedisGuardRejectsPausedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		guard, key := guardOn(t, s), "order"
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
	})
}

// Tokens are compared as integers, not as floating-point numbers or strings.
func TestRedisGuardComparesTokensExactly(t *testing.T) {
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

func TestFailedCommandKeepsHighestToken(t *testing.T) {
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
	last, err := redis.Int64(s.Do(t, "GET", "redlatch_fence::"+key), nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, last)
}

// put sends a request with a token, or without one if it is "", and returns the status.
func put(t *testing.T, server http.Handler, path, token string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, path, nil)
	if n, err := strconv.ParseInt(token, 10, 64); err == nil && n > 0 {
		fence.SetHeader(r.Header, n)
	} else if token != "" {
		r.Header.Set("Fencing-Token", token)
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Code
}

func TestU12HTTPGuardRejectsPausedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paused, next := pausedAndNext(t, redistest.Mini(t, embedded.WithInProcess()))
		server := &fence.Handler{Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		a, b := strconv.FormatInt(paused, 10), strconv.FormatInt(next, 10)
		require.Equal(t, http.StatusOK, put(t, server, "/orders/42", a))
		require.Equal(t, http.StatusOK, put(t, server, "/orders/42", b))
		require.Equal(t, http.StatusPreconditionFailed, put(t, server, "/orders/42", a))
		require.Equal(t, http.StatusOK, put(t, server, "/orders/42", b))
		require.Equal(t, http.StatusOK, put(t, server, "/orders/43", a), "another resource")
		for _, none := range []string{"", "0", "-1", "many", "1.5"} {
			require.Equal(t, http.StatusPreconditionRequired, put(t, server, "/orders/42", none), none)
		}
	})
}

// An accepted request may still write, so a higher token waits for its end. Lower tokens are late from
// then on.
func TestHigherTokenWaitsForRunningRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served []string
		goOn := make(chan struct{})
		server := &fence.Handler{
			Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Fencing-Token") == "5" {
					<-goOn
				}
				served = append(served, r.Header.Get("Fencing-Token"))
			}),
			Resource: func(*http.Request) string { return "one" },
		}
		statuses := make(chan int, 2)
		for _, token := range []string{"5", "6"} {
			go func() { statuses <- put(t, server, "/", token) }()
			synctest.Wait()
		}
		for _, late := range []string{"4", "5"} { // 5 is late, even while 6 is waiting
			require.Equal(t, http.StatusPreconditionFailed, put(t, server, "/", late))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		r, w := httptest.NewRequestWithContext(gone, http.MethodPut, "/", nil), httptest.NewRecorder()
		fence.SetHeader(r.Header, 6)
		server.ServeHTTP(w, r)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, "its client has disconnected")
		require.Empty(t, statuses)
		close(goOn)
		require.Equal(t, http.StatusOK, <-statuses)
		require.Equal(t, http.StatusOK, <-statuses)
		require.Equal(t, []string{"5", "6"}, served)
	})
}

func TestKeysHaveSeparateTokenKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	guard := fence.Redis{Eval: func(_ context.Context, _ string, keys []string, _ ...any) (any, error) {
		other, taken := seen[keys[0]]
		require.False(t, taken, "%q and %q", keys[1], other)
		seen[keys[0]] = keys[1]
		return []any{int64(1)}, nil
	}}
	for _, key := range []string{"x", "{x}", "{x}y", "x{y}", ":x", ":{x}", "{", "a{b"} {
		_, err := guard.Do(t.Context(), 1, "SET", key, "a")
		require.NoError(t, err)
	}
	require.Equal(t, "x", seen["redlatch_fence:{x}"])
}
