package redlatch_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// readsItself reports whether a caller of Lock is reading its own reply.
func readsItself() bool {
	buf := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "mux.(*Mux).readOne") && strings.Contains(stack, "rlock.(*Lock).") {
			return true
		}
	}
	return false
}

// pairs locks and unlocks from a single goroutine until callers read.
func pairs(t *testing.T, l *rlock.Lock) {
	t.Helper()
	require.NoError(t, tryPairs(t, l))
}

func tryPairs(t *testing.T, l *rlock.Lock) error {
	t.Helper()
	for range 20 {
		hold, err := l.Lock(t.Context())
		if err != nil {
			return err
		}
		require.NoError(t, hold.Unlock())
	}
	return nil
}

// requireNoneInDoubtAfterAClose makes the server close the client's connection, which callers read, and checks
// that later calls do not use it. The kernel of a busy machine may deliver a close late, but not every time.
func requireNoneInDoubtAfterAClose(t *testing.T, srv *redistest.Server, l *rlock.Lock) {
	t.Helper()
	for range 20 {
		srv.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		<-time.After(5 * time.Millisecond)
		err := tryPairs(t, l)
		if err == nil {
			return
		}
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		pairs(t, l) // callers must also read the next connection: other readers notice each close
	}
	t.Fatal("each call after a close was sent on the closed connection")
}

// On each type of socket, a single caller reads its own reply. An ended context ends only the
// read, and a connection that the server has closed since the last reply is not used.
//
//nolint:paralleltest // it looks at all goroutines
func TestSingleCallerReadsOnEveryConnectionType(t *testing.T) {
	a := newAuthority(t)
	speak, secure := speakingTLS(t, a, nil)
	srv := redistest.Start(t, speak, redistest.WithUnixSocket())
	for name, c := range map[string]struct {
		url  string
		opts []redlatch.Option
	}{
		"TCP":  {url: srv.URL()},
		"Unix": {url: "unix://" + srv.Socket()},
		"TLS":  {url: "rediss://" + secure, opts: []redlatch.Option{redlatch.WithTLSConfig(a.trusting())}},
	} {
		t.Run(name, func(t *testing.T) {
			// The frozen server does not reply, and a slow machine needs time to check.
			client := dialled(t, c.url, append(c.opts, redlatch.WithCommandTimeout(time.Minute))...)
			l := rlock.New(client, redistest.Key(t))
			pairs(t, l)
			before := connections(t, srv)
			requireReads(t, srv, rlock.New(client, redistest.Key(t)))
			pairs(t, l)
			require.Equal(t, before, connections(t, srv), "the connection is unchanged")
			for range 10 {
				requireNoneInDoubtAfterAClose(t, srv, l)
			}
			require.Greater(t, connections(t, srv), before)
		})
	}
}

// requireReads starts callers on a frozen server until one is seen reading. A caller reads for at most a
// second, which a busy machine can miss.
func requireReads(t *testing.T, srv *redistest.Server, l *rlock.Lock) {
	t.Helper()
	require.Eventually(t, func() bool {
		pairs(t, l)
		return reads(t, srv, l)
	}, 3*soon, time.Millisecond, "no caller reads")
}

func reads(t *testing.T, srv *redistest.Server, l *rlock.Lock) (seen bool) {
	t.Helper()
	srv.Pause()
	defer srv.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	came := make(chan error, 1)
	go func() {
		_, err := l.Lock(ctx)
		came <- err
	}()
	for look := 0; look < 100 && !seen; look++ {
		<-time.After(5 * time.Millisecond)
		seen = readsItself()
	}
	cancel()
	require.ErrorIs(t, <-came, context.Canceled)
	return seen
}

// connections returns the number of connections that the server has accepted.
func connections(t *testing.T, srv *redistest.Server) int {
	t.Helper()
	info, _ := srv.Do(t, "INFO", "stats").([]byte)
	_, rest, _ := strings.Cut(string(info), "total_connections_received:")
	count, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(count)
	require.NoError(t, err)
	return n
}
