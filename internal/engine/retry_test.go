package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

func TestRetryContinuesUntilCallRuns(t *testing.T) {
	for name, c := range map[string]struct {
		passing, last error
	}{
		"unreachable, then fine":      {errNotSent, nil},
		"unreachable, then uncertain": {errNotSent, errBroken},
		"loading, then fine":          {&transport.ServerError{Text: "LOADING wait"}, nil},
		"failing over, then refused":  {&transport.ServerError{Text: "READONLY You can't write"}, errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := engineOver(t, &faketransport.Fake{})
				times := 0
				err := e.Retry(t.Context(), func() error {
					if times++; times < 5 {
						return c.passing
					}
					return c.last
				})
				require.Equal(t, c.last, err)
				require.Equal(t, 5, times)
			})
		})
	}
}

func TestRetryReturnsLastErrorAfterCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		began, times := time.Now(), 0
		err := e.Retry(t.Context(), func() error {
			times++
			return fmt.Errorf("%w: time %d", transport.ErrNotSent, times)
		})
		require.ErrorContains(t, err, fmt.Sprintf("time %d", times))
		require.Equal(t, testCommand, time.Since(began))
		require.Greater(t, times, 5)
		require.Less(t, times, 15, "the pauses grow")
	})
}

func TestRetryEndsWithContextOrClient(t *testing.T) {
	for name, end := range map[string]func(e *Engine, cancel func()){
		"context": func(_ *Engine, cancel func()) { cancel() },
		"close":   func(e *Engine, _ func()) { e.beginClosing() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := engineOver(t, &faketransport.Fake{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Second, func() { end(e, cancel) })
				began := time.Now()
				err := e.Retry(ctx, func() error { return errNotSent })
				require.Equal(t, errNotSent, err)
				require.Equal(t, time.Second, time.Since(began))
			})
		})
	}
}

func TestTransientErrorsMeanCallDidNotRun(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "FAILOVER", "MISCONF", "OOM"} {
		require.True(t, Passing(fmt.Errorf("wrapped: %w", &transport.ServerError{Text: code + " for now"})), code)
	}
	require.True(t, Passing(&transport.ServerError{Text: "ERR max number of clients reached"}), "over another client it is a call's reply")
	require.True(t, Passing(errNotSent))
	for _, err := range []error{
		nil,
		errBroken,
		errRefused,
		errors.New("anything else"),
		fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed),
		&transport.ServerError{Text: "WRONGTYPE Operation against a key holding the wrong kind of value"},
		&transport.ServerError{Text: "ERR LOADING is not the code"},
	} {
		require.False(t, Passing(err), "%v", err)
	}
}

// Redis before version 7 checks its role and its last save at a script's first write.
func TestScriptWriteErrorIsTransient(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"-READONLY You can't write against a read only replica. ",
		"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. ",
		"-OOM command not allowed when used memory > 'maxmemory'. ",
	} {
		err := &transport.ServerError{Text: "ERR Error running script (call to f_x): @user_script:1: @user_script: 1: " + said}
		require.True(t, Passing(err))
		require.True(t, Retryable(err))
		require.False(t, Halfway(err))
	}
}

func TestExplainNamesWrongTypeAndServerError(t *testing.T) {
	t.Parallel()
	require.NoError(t, Explain(nil))
	require.Equal(t, errRefused, Explain(errRefused))
	for _, text := range []string{
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"ERR Error running script: @user_script:9: WRONGTYPE Operation against a key",
		"ERR Error running script (call to f_1): @user_script:9: -WRONGTYPE Operation against a key",
	} {
		err := Explain(&transport.ServerError{Text: text})
		require.ErrorIs(t, err, ErrWrongType, text)
		require.ErrorContains(t, err, text)
	}
}

func TestNeverSentErrorStatesTotalWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{Queues: true})
		for what, do := range map[string]func() error{
			"persist": func() error {
				_, err := e.Persist(testCommand, func(rest time.Duration) error {
					_, err := e.Attempt().RunFor(rest, nil)
					return err
				})
				return err
			},
			"retry": func() error {
				return e.Retry(t.Context(), func() error {
					_, err := e.Attempt().Run(t.Context(), nil)
					return err
				})
			},
		} {
			began := time.Now()
			err := do()
			took := time.Since(began)
			require.GreaterOrEqual(t, took, testCommand/2, what)
			require.EqualError(t, err, fmt.Sprintf("%v: not sent within %v", ErrNotSent, took.Round(time.Millisecond)), what)
		}
	})
}

func TestRetryErrorPrefersReasonOverTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		refused := fmt.Errorf("%w: connection refused", ErrNotSent)
		late := fmt.Errorf("%w: %w within a second", ErrNotSent, errNotYet)
		errs := []error{late, refused, late, late}
		n := 0
		err := e.Retry(t.Context(), func() error {
			time.Sleep(testCommand / 3)
			n++
			return errs[min(n, len(errs))-1]
		})
		require.Equal(t, refused, err)
		require.Greater(t, n, 2)
	})
}
