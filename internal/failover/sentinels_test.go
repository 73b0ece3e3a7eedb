package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watch is a set of Sentinels.
type watch struct {
	mu    sync.Mutex // guards the queries
	asked map[string]int
	says  map[string]func() (any, error) // to get-master-addr-by-name; nil: it never answers
	knows []string                       // to SENTINEL SENTINELS, ports of 10.0.0.9
}

func (w *watch) dial(ctx context.Context, addr string) (redis.Conn, error) {
	w.mu.Lock()
	w.asked[addr]++
	w.mu.Unlock()
	says, there := w.says[addr]
	switch {
	case !there:
		return nil, errors.New("connection refused")
	case says == nil:
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return &sentinelConn{w: w, says: says}, nil
}

type sentinelConn struct {
	redis.Conn
	w    *watch
	says func() (any, error)
}

func (c *sentinelConn) Do(command string, args ...any) (any, error) {
	switch fmt.Sprint(command, args) {
	case "SENTINEL[MASTER m]":
		reply, err := c.says()
		if err != nil {
			return nil, err
		}
		// During a failover the address here is the former master's.
		return []any{[]byte("ip"), []byte("10.0.0.66"), []byte("port"), []byte("6379"), []byte("config-epoch"), reply.([]any)[2]}, nil
	case "SENTINEL[GET-MASTER-ADDR-BY-NAME m]":
		reply, err := c.says()
		return reply.([]any)[:2], err
	case "SENTINEL[SENTINELS m]":
		var all []any
		for _, port := range c.w.knows {
			all = append(all, []any{[]byte("ip"), []byte("10.0.0.9"), []byte("port"), []byte(port), []byte("flags"), []byte("sentinel")})
		}
		return append(all, "no map"), nil
	}
	return nil, redis.Error("ERR what is " + command)
}

func (*sentinelConn) Close() error { return nil }

// names returns a function that returns a Sentinel's answer.
func names(ip, port, epoch string) func() (any, error) {
	return func() (any, error) {
		return []any{[]byte(ip), []byte(port), []byte(epoch)}, nil
	}
}

func newWatch(says map[string]func() (any, error), knows ...string) (*watch, *Sentinels) {
	w := &watch{asked: map[string]int{}, says: says, knows: knows}
	return w, NewSentinels("m", []string{"a:1", "b:1", "c:1"}, w.dial)
}

func TestSentinelWithLatestEpochWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func() (any, error) { // twice
			time.Sleep(hurry / 4)
			return names("10.0.0.2", "6379", "8")()
		}
		_, s := newWatch(map[string]func() (any, error){"a:1": names("10.0.0.1", "6379", "7"), "b:1": slow, "c:1": names("::1", "1", "x")})
		began := time.Now()
		addr, err := s.Master(t.Context())
		require.NoError(t, err)
		require.Equal(t, "10.0.0.2:6379", addr)
		require.Equal(t, hurry/2, time.Since(began))
	})
}

func TestFirstAnswerEndsWaitForSilentSentinels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := func() (any, error) {
			time.Sleep(time.Second / 2) // twice
			return names("::1", "6379", "7")()
		}
		_, s := newWatch(map[string]func() (any, error){"a:1": nil, "b:1": late})
		began := time.Now()
		addr, err := s.Master(t.Context())
		require.NoError(t, err)
		require.Equal(t, "[::1]:6379", addr)
		require.Equal(t, time.Second+hurry, time.Since(began))
	})
}

func TestDiscoveredSentinelsReplaceUnreachableOnes(t *testing.T) {
	t.Parallel()
	w, s := newWatch(map[string]func() (any, error){"a:1": names("10.0.0.1", "6379", "7")}, "5", "6")
	_, err := s.Master(t.Context())
	require.NoError(t, err)
	delete(w.says, "a:1")
	w.says["10.0.0.9:6"] = names("10.0.0.2", "6379", "8")
	addr, err := s.Master(t.Context())
	require.NoError(t, err)
	require.Equal(t, "10.0.0.2:6379", addr)
	require.Equal(t, map[string]int{"a:1": 2, "b:1": 2, "c:1": 2, "10.0.0.9:5": 1, "10.0.0.9:6": 1}, w.asked)
	require.Len(t, s.known(), 5, "each once")
}

func TestUnknownMasterErrorStatesReason(t *testing.T) {
	t.Parallel()
	no := redis.Error("ERR No such master with that name")
	_, s := newWatch(map[string]func() (any, error){
		"a:1": func() (any, error) { return nil, no },
		"b:1": func() (any, error) { return []any{"1.2.3.4", nil, []byte("1")}, nil },
	})
	_, err := s.Master(t.Context())
	require.ErrorIs(t, err, no)
	require.ErrorContains(t, err, "sentinel a:1: ERR No such master")
	require.ErrorContains(t, err, "sentinel b:1: ")
	require.ErrorContains(t, err, "sentinel c:1: connection refused")
}

// oddConn is a Sentinel that returns a field without a value.
type oddConn struct{ redis.Conn }

func (oddConn) Do(string, ...any) (any, error) { return []any{[]byte("config-epoch")}, nil }

func (oddConn) Close() error { return nil }

func TestSentinelWithInvalidFieldsIsBadReply(t *testing.T) {
	t.Parallel()
	s := NewSentinels("m", []string{"a:1"}, func(context.Context, string) (redis.Conn, error) { return oddConn{}, nil })
	_, err := s.Master(t.Context())
	require.ErrorIs(t, err, transport.ErrBadReply)
	require.ErrorContains(t, err, "sentinel a:1: redlatch: unexpected reply to SENTINEL MASTER")
}

func TestMasterQueryEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, s := newWatch(map[string]func() (any, error){"a:1": nil, "b:1": nil, "c:1": nil})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Master(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// In containers each new Sentinel has a new address. A client must find them through earlier ones.
func TestRepeatedlyReplacedSentinelsAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := names("10.0.0.1", "6379", "7")
		w, s := newWatch(map[string]func() (any, error){"a:1": answer}, "1000")
		for port := 1000; port < 1100; port++ {
			addr, err := s.Master(t.Context())
			require.NoError(t, err, "replaced %d times", port-1000)
			require.Equal(t, "10.0.0.1:6379", addr)
			w.says = map[string]func() (any, error){fmt.Sprintf("10.0.0.9:%d", port): answer}
			w.knows = []string{fmt.Sprint(port + 1)}
		}
	})
}
