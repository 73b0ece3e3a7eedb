package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/rlock"
)

// soon bounds every wait.
const soon = 30 * time.Second

func connect(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, append([]redlatch.Option{redlatch.WithPollCap(time.Hour)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// candidate is a Run in the background.
type candidate struct {
	config leader.Config
	stop   context.CancelFunc
	leads  chan context.Context // each leadership
	ended  chan error           // by Run
	errors chan error           // by OnError
}

// run starts a candidate. Unless set, Lead runs until its context ends.
func run(t *testing.T, client *redlatch.Client, name string, config leader.Config) *candidate {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &candidate{config, stop, make(chan context.Context, 100), make(chan error, 1), make(chan error, 100)}
	lead := config.Lead
	c.config.Lead = func(ctx context.Context) error {
		c.leads <- ctx
		if lead != nil {
			return lead(ctx)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	c.config.OnError = func(err error) { c.errors <- err }
	if c.config.Pause == 0 {
		c.config.Pause = time.Millisecond
	}
	var done sync.WaitGroup
	done.Go(func() { c.ended <- leader.Run(ctx, client, name, c.config) })
	t.Cleanup(func() { stop(); done.Wait() })
	return c
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case next := <-from:
		return next
	case <-time.After(soon):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// waiting returns when a candidate is queued or subscribed to the lock's channel.
func waiting(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		pair, _ := s.Do(t, "PUBSUB", "NUMSUB", codec.LockChannel(name)).([]any)
		return len(pair) == 2 && pair[1] != int64(0) || s.Do(t, "EXISTS", codec.QueueKey(name)) == int64(1)
	}, soon, 5*time.Millisecond, "no candidate waits")
}

func TestOneLeadsAndTheNextFollowsWhenItStops(t *testing.T) {
	t.Parallel()
	for kind, fair := range map[string]bool{"plain": false, "fair": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, name := redistest.Shared(t), redistest.Key(t)
			var first, second leader.Status
			one := run(t, connect(t, s.URL()), name, leader.Config{Fair: fair, Status: &first})
			leads := receive(t, one.leads)
			require.True(t, first.IsLeader())
			two := run(t, connect(t, s.URL()), name, leader.Config{Fair: fair, Status: &second})
			waiting(t, s, name)
			require.Empty(t, two.leads)
			require.False(t, second.IsLeader())

			one.stop()
			next := receive(t, two.leads)
			require.ErrorIs(t, leads.Err(), context.Canceled)
			require.NoError(t, receive(t, one.ended))
			require.False(t, first.IsLeader())
			require.True(t, second.IsLeader())
			require.NoError(t, next.Err())
			two.stop()
			require.NoError(t, receive(t, two.ended))
			require.Zero(t, s.Do(t, "EXISTS", name), "nothing is left behind")
			require.Empty(t, one.errors)
			require.Empty(t, two.errors)
		})
	}
}

func TestLostLeadershipIsReportedAndTheCandidateStandsAgain(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	var status leader.Status
	own := errors.New("half of the work is undone")
	c := run(t, connect(t, s.URL(), redlatch.WithWatchdogTimeout(3*time.Second)), name, leader.Config{
		Status: &status,
		Lead:   func(ctx context.Context) error { <-ctx.Done(); return own },
	})
	leads := receive(t, c.leads)
	s.Do(t, "DEL", name)
	err := receive(t, c.errors)
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.ErrorIs(t, err, own, "Lead's own error is not dropped")
	require.ErrorIs(t, context.Cause(leads), redlatch.ErrLost)
	again := receive(t, c.leads)
	require.NoError(t, again.Err())
	require.True(t, status.IsLeader())
	c.stop()
	require.ErrorIs(t, receive(t, c.ended), own)
}

func TestLeadThatReturnsByItselfEndsRun(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	failed := errors.New("failed")
	for says, want := range map[string]error{"nil": nil, "an error": failed, "an error like that of a context": context.Canceled} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			name := redistest.Key(t)
			c := run(t, connect(t, s.URL()), name, leader.Config{Lead: func(context.Context) error { return want }})
			require.Equal(t, want == nil, receive(t, c.ended) == nil)
			require.Zero(t, s.Do(t, "EXISTS", name), "the lock is free")
			require.Empty(t, c.errors)
		})
	}
}

func TestPanicOfLeadFreesTheLockAndGoesOn(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	client := connect(t, s.URL())
	require.PanicsWithValue(t, "no", func() {
		_ = leader.Run(t.Context(), client, name, leader.Config{Lead: func(context.Context) error { panic("no") }})
	})
	require.Zero(t, s.Do(t, "EXISTS", name))
}

func TestErrorsThatStayEndRun(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	client := connect(t, s.URL())
	work := func(context.Context) error { return nil }
	require.ErrorIs(t, leader.Run(t.Context(), client, name, leader.Config{}), redlatch.ErrInvalid)
	require.ErrorIs(t, leader.Run(t.Context(), client, name, leader.Config{Lead: work, Pause: -1}), redlatch.ErrInvalid)
	require.ErrorIs(t, leader.Run(t.Context(), client, "", leader.Config{Lead: work}), redlatch.ErrInvalid)
	s.Do(t, "SET", name, "text")
	require.ErrorIs(t, leader.Run(t.Context(), client, name, leader.Config{Lead: work}), redlatch.ErrWrongType)

	closed, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	c := run(t, closed, redistest.Key(t), leader.Config{})
	receive(t, c.leads)
	require.NoError(t, closed.Close())
	require.ErrorIs(t, receive(t, c.ended), redlatch.ErrClosed)
}

func TestCandidateAsksAgainWhenRedisIsAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	client := connect(t, proxy.URL(), redlatch.WithCommandTimeout(200*time.Millisecond))
	proxy.Refuse(true)
	proxy.Reset()
	c := run(t, client, "job", leader.Config{})
	err := receive(t, c.errors)
	require.True(t, errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain), "%v", err)
	proxy.Refuse(false)
	receive(t, c.leads)
	c.stop()
	require.NoError(t, receive(t, c.ended))
}

func TestLeadThatDoesNotReturnInTimeIsLogged(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	said := make(chan string, 100)
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(3*time.Second),
		redlatch.WithLogger(slog.New(slog.NewTextHandler(lines(said), nil))))
	stuck := make(chan struct{})
	c := run(t, client, name, leader.Config{Lead: func(context.Context) error { <-stuck; return nil }})
	receive(t, c.leads)
	s.Do(t, "DEL", name)
	for {
		line := receive(t, said)
		if strings.Contains(line, "Lead has not returned") {
			require.Contains(t, line, name)
			require.Contains(t, line, "level=ERROR")
			break
		}
	}
	close(stuck)
	require.ErrorIs(t, receive(t, c.errors), redlatch.ErrLost)
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestReadinessIsThatOfTheLeader(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	var status leader.Status
	probe := func() int {
		w := httptest.NewRecorder()
		status.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ready", nil))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		return w.Code
	}
	require.Equal(t, http.StatusServiceUnavailable, probe())
	c := run(t, connect(t, s.URL()), name, leader.Config{Status: &status})
	receive(t, c.leads)
	require.Equal(t, http.StatusOK, probe())
	c.stop()
	require.NoError(t, receive(t, c.ended))
	require.Equal(t, http.StatusServiceUnavailable, probe())
}

func TestErrorsAreLoggedWhenNoFunctionTakesThem(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	said := make(chan string, 100)
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(3*time.Second),
		redlatch.WithLogger(slog.New(slog.NewTextHandler(lines(said), nil))))
	ctx, stop := context.WithCancel(t.Context())
	leads, ended := make(chan struct{}, 10), make(chan error, 1)
	go func() {
		ended <- leader.Run(ctx, client, name, leader.Config{Pause: time.Millisecond, Lead: func(ctx context.Context) error {
			leads <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}})
	}()
	receive(t, leads)
	held, err := rlock.New(client, name).ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	receive(t, leads)
	stop()
	require.NoError(t, receive(t, ended))
	var all string
	for len(said) > 0 {
		all += <-said
	}
	require.Contains(t, all, "asks again after a pause")
	require.Contains(t, all, name)
}

func TestErrorOfLeadDoesNotEndRunAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.New(srv.Server.Dial)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		c := run(t, client, "job", leader.Config{Lead: func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("the work: %w", redlatch.ErrInvalid)
		}})
		<-c.leads
		srv.Do(t, "DEL", "job")
		require.ErrorIs(t, receive(t, c.errors), redlatch.ErrLost)
		<-c.leads
		c.stop()
		require.ErrorIs(t, <-c.ended, redlatch.ErrInvalid)
	})
}

// The context ends after the server has granted the lock and before the reply.
func TestACandidateThatStopsInDoubtSaysThatTheLockMayNotBeFree(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	client := connect(t, proxy.URL())
	h, err := rlock.New(client, "job").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Unlock())
	proxy.Blackhole(redistest.ToClient)
	c := run(t, client, "job", leader.Config{})
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", "job") == int64(1) }, 10*time.Second, time.Millisecond)
	c.stop()
	err = receive(t, c.ended)
	require.EqualValues(t, 1, s.Do(t, "EXISTS", "job"))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	proxy.Heal()
}
