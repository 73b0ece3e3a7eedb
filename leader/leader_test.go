package leader_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
)

// bubble runs a test in fake time. Each call to open returns a new client.
func bubble(t *testing.T, test func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		test(t, s, func(opts ...redlatch.Option) *redlatch.Client { return callers.InProcess(t, s, opts...) })
	})
}

// candidate runs Run in the background.
type candidate struct {
	config leader.Config
	stop   context.CancelFunc
	leads  chan context.Context // from Lead
	ended  chan error           // by Run
	errors chan error           // by OnError
}

// run starts a candidate. The default Lead runs until its context ends.
func run(t *testing.T, client *redlatch.Client, config leader.Config) *candidate {
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
	done.Go(func() { c.ended <- leader.Run(ctx, client, "job", c.config) })
	t.Cleanup(func() { stop(); done.Wait() })
	return c
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case next := <-from:
		return next
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func TestNextCandidateLeadsAfterStop(t *testing.T) {
	for queued, fair := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
			t.Helper()
			var first, second leader.Status
			one := run(t, open(), leader.Config{Fair: fair, Status: &first})
			leads := receive(t, one.leads)
			require.True(t, first.IsLeader())
			two := run(t, open(), leader.Config{Fair: fair, Status: &second})
			time.Sleep(time.Minute)
			require.Empty(t, two.leads)
			require.False(t, second.IsLeader())
			require.EqualValues(t, queued, s.Do(t, "EXISTS", codec.QueueKey("job")))

			one.stop()
			next := receive(t, two.leads)
			require.ErrorIs(t, leads.Err(), context.Canceled)
			require.NoError(t, receive(t, one.ended))
			require.False(t, first.IsLeader())
			require.True(t, second.IsLeader())
			require.NoError(t, next.Err())
			two.stop()
			require.NoError(t, receive(t, two.ended))
			require.Zero(t, s.Do(t, "EXISTS", "job"), "nothing is left behind")
			require.Empty(t, one.errors)
			require.Empty(t, two.errors)
		})
	}
}

func TestLostLeadershipReportedAndRetried(t *testing.T) {
	for name, own := range map[string]error{"an error": errors.New("half of the work is undone"), "one that ends Run": redlatch.ErrInvalid} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
				t.Helper()
				var status leader.Status
				c := run(t, open(), leader.Config{Status: &status, Lead: func(ctx context.Context) error { <-ctx.Done(); return own }})
				leads := receive(t, c.leads)
				s.Do(t, "DEL", "job")
				err := receive(t, c.errors)
				require.ErrorIs(t, err, redlatch.ErrLost)
				require.ErrorIs(t, err, own, "Lead's own error is not dropped")
				require.ErrorIs(t, context.Cause(leads), redlatch.ErrLost)
				again := receive(t, c.leads)
				require.NoError(t, again.Err())
				require.True(t, status.IsLeader())
				c.stop()
				require.ErrorIs(t, receive(t, c.ended), own)
			})
		})
	}
}

func TestLeadReturnEndsRun(t *testing.T) {
	for _, want := range []error{nil, errors.New("failed"), context.Canceled} {
		bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
			t.Helper()
			c := run(t, open(), leader.Config{Lead: func(context.Context) error { return want }})
			require.ErrorIs(t, receive(t, c.ended), want)
			require.Zero(t, s.Do(t, "EXISTS", "job"), "the lock is free")
			require.Empty(t, c.errors)
		})
	}
}

func TestLeadPanicReleasesLockAndPropagates(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
		t.Helper()
		require.PanicsWithValue(t, "no", func() {
			_ = leader.Run(t.Context(), open(), "job", leader.Config{Lead: func(context.Context) error { panic("no") }})
		})
		require.Zero(t, s.Do(t, "EXISTS", "job"))
	})
}

func TestPermanentErrorsEndRun(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
		t.Helper()
		work := func(context.Context) error { return nil }
		s.Do(t, "SET", "text", "text")
		for _, c := range []struct {
			name   string
			config leader.Config
			want   error
		}{
			{"job", leader.Config{}, redlatch.ErrInvalid}, {"job", leader.Config{Lead: work, Pause: -1}, redlatch.ErrInvalid},
			{"", leader.Config{Lead: work}, redlatch.ErrInvalid}, {"text", leader.Config{Lead: work}, redlatch.ErrWrongType},
		} {
			require.ErrorIs(t, leader.Run(t.Context(), open(), c.name, c.config), c.want)
		}
		closed := open()
		c := run(t, closed, leader.Config{})
		receive(t, c.leads)
		require.NoError(t, closed.Close())
		require.ErrorIs(t, receive(t, c.ended), redlatch.ErrClosed)
	})
}

func TestCandidateRetriesDuringOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
		t.Helper()
		s.FailWith("LOADING Redis is loading the dataset in memory")
		c := run(t, open(), leader.Config{})
		require.ErrorContains(t, receive(t, c.errors), "LOADING")
		s.Heal()
		receive(t, c.leads)
		c.stop()
		require.NoError(t, receive(t, c.ended))
	})
}

func TestSlowLeadReturnIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
		t.Helper()
		said, log := redistest.NewJournal()
		stuck := make(chan struct{})
		release := sync.OnceFunc(func() { close(stuck) })
		c := run(t, open(redlatch.WithLogger(log)), leader.Config{Lead: func(context.Context) error { <-stuck; return nil }})
		t.Cleanup(release) // before run's cleanup, which waits for Lead
		receive(t, c.leads)
		s.Do(t, "DEL", "job")
		time.Sleep(time.Minute)
		lines := said.Lines("redlatch: Lead has not returned")
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "job")
		require.Contains(t, lines[0], "ERROR")
		release()
		require.ErrorIs(t, receive(t, c.errors), redlatch.ErrLost)
	})
}

func TestReadinessFollowsLeadership(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
		t.Helper()
		var status leader.Status
		probe := func() int {
			w := httptest.NewRecorder()
			status.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ready", nil))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			return w.Code
		}
		require.Equal(t, http.StatusServiceUnavailable, probe())
		c := run(t, open(), leader.Config{Status: &status})
		receive(t, c.leads)
		require.Equal(t, http.StatusOK, probe())
		c.stop()
		require.NoError(t, receive(t, c.ended))
		require.Equal(t, http.StatusServiceUnavailable, probe())
	})
}

func TestErrorsLoggedWithoutHandler(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *redlatch.Client) {
		t.Helper()
		said, log := redistest.NewJournal()
		ctx, stop := context.WithCancel(t.Context())
		leads, ended := make(chan struct{}, 10), make(chan error, 1)
		go func() {
			ended <- leader.Run(ctx, open(redlatch.WithLogger(log)), "job", leader.Config{Lead: func(ctx context.Context) error {
				leads <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}})
		}()
		receive(t, leads)
		s.Do(t, "DEL", "job")
		receive(t, leads)
		stop()
		require.NoError(t, receive(t, ended))
		lines := said.Lines("redlatch: candidate is not leading; retrying after a pause")
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "job")
	})
}

// The context ends after the server has granted the lock and before the reply arrives.
func TestUncertainStopReportsLockMayBeHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		tr, client := callers.Stalling(t, s)
		tr.Mute(true)
		c := run(t, client, leader.Config{})
		synctest.Wait()
		c.stop()
		err := receive(t, c.ended)
		require.EqualValues(t, 1, s.Do(t, "EXISTS", "job"))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		tr.Mute(false)
	})
}
