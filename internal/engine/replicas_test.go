package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

// replicating is a transport with replicas.
type replicating struct {
	*faketransport.Fake
	replicas int
	timeout  time.Duration
	call     *transport.Call
	done     func(any, int64, error)
	answer   func(done func(any, int64, error))
}

func (r *replicating) Replicate(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
	r.call, r.replicas, r.timeout, r.done = call, replicas, timeout, done
	if r.answer != nil {
		r.answer(done)
	}
}

func syncing(t *testing.T, tr transport.Transport) *Engine {
	t.Helper()
	e := New(Config{
		Transport: tr, ClientID: uuid.New(), Lease: testLease, Command: testCommand, PollCap: 10 * time.Second,
		Replicas: 2, SyncWait: time.Second,
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func await(ctx context.Context, e *Engine) error {
	return e.Replicate(func(c *transport.Call) { luasrc.FillReplicate(c, "lock", "owner") }, reply.Holds).Wait(ctx)
}

func TestWaitForReplicasCountsAcknowledgments(t *testing.T) {
	t.Parallel()
	refusal := &transport.ServerError{Text: "NOPERM WAIT"}
	for _, c := range []struct {
		reply any
		have  int64
		err   error
		is    []error
		not   []error
		says  string // "" if it is healthy
	}{
		{reply: int64(1), have: 2},
		{reply: int64(1), have: 3},
		{reply: int64(1), have: 1, says: "1 of 2 required replicas within 1s"},
		{reply: int64(1), have: 0, says: "0 of 2 required replicas within 1s"},
		{reply: nil, have: 2, says: "the master no longer has the lock"},
		{reply: "1", have: 2, says: "unexpected reply", is: []error{transport.ErrBadReply}},
		{err: refusal, says: "NOPERM WAIT", is: []error{refusal}},
		{err: fmt.Errorf("%w: dial", ErrNotSent), says: "command not sent: dial", not: []error{ErrNotSent}},
		{err: fmt.Errorf("%w: cut", ErrUncertain), says: "reply lost: cut", not: []error{ErrUncertain}},
		{err: fmt.Errorf("%w: %w", ErrUncertain, ErrClosed), says: "closed", is: []error{ErrClosed}, not: []error{ErrUncertain}},
	} {
		tr := &replicating{Fake: &faketransport.Fake{}, answer: func(done func(any, int64, error)) { done(c.reply, c.have, c.err) }}
		err := await(t.Context(), syncing(t, tr))
		require.Equal(t, luasrc.Replicate, tr.call.Script)
		require.Equal(t, []any{"lock", "owner"}, tr.call.Args)
		require.Equal(t, "lock", tr.call.Key(0))
		require.Equal(t, 2, tr.replicas)
		require.Equal(t, time.Second, tr.timeout)
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrNotReplicated)
		require.ErrorContains(t, err, c.says)
		for _, is := range c.is {
			require.ErrorIs(t, err, is)
		}
		for _, not := range c.not {
			require.NotErrorIs(t, err, not, "that is about the question, and not about the lock")
		}
		require.False(t, Passing(err), "it is not tried again")
	}
}

func TestWaitForReplicasOutcomes(t *testing.T) {
	t.Parallel()
	why := errors.New("no time left")
	for name, c := range map[string]struct {
		end   func(e *Engine, cancel context.CancelCauseFunc)
		after time.Duration
		is    []error
	}{
		"context": {func(_ *Engine, cancel context.CancelCauseFunc) { cancel(why) }, 0, []error{context.Canceled, why}},
		"wait":    {func(_ *Engine, cancel context.CancelCauseFunc) { cancel(ErrWaitOver) }, 0, []error{ErrWaitOver}},
		"close":   {func(e *Engine, _ context.CancelCauseFunc) { e.beginClosing() }, 0, []error{ErrClosed}},
		"silence": {func(*Engine, context.CancelCauseFunc) {}, 2*time.Second + testCommand, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := &replicating{Fake: &faketransport.Fake{}}
				e := syncing(t, tr)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ended := make(chan error, 1)
				began := time.Now()
				go func() { ended <- await(ctx, e) }()
				synctest.Wait()
				c.end(e, cancel)
				err := <-ended
				require.ErrorIs(t, err, ErrNotReplicated)
				for _, is := range c.is {
					require.ErrorIs(t, err, is)
				}
				require.Equal(t, c.after, time.Since(began))
				require.False(t, tr.call.Claim(0), "it is no longer sent")
				tr.done(int64(1), 2, nil) // too late, and it must not block
			})
		})
	}
}

func TestTransportWithoutWaitReturnsError(t *testing.T) {
	t.Parallel()
	require.NoError(t, NoReplicator(&replicating{}))
	err := NoReplicator(&faketransport.Fake{})
	require.EqualError(t, err, "WithReplicaSync requires a transport.Replicator: *faketransport.Fake is not one")
	err = await(t.Context(), syncing(t, &faketransport.Fake{}))
	require.ErrorIs(t, err, ErrNotReplicated)
	require.ErrorContains(t, err, "*faketransport.Fake")
}
