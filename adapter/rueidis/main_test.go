package rueidis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// TestMain lets rueidis be late with what it closes in its own time, five seconds after.
func TestMain(m *testing.M) {
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*sentinelClient).refreshRetry"),
	)
}

// plainly are the options of a client to one server.
func plainly(addr string) lib.ClientOption {
	return lib.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
}

// clientOf makes a client that ends with the test.
func clientOf(tb testing.TB, opt lib.ClientOption) lib.Client {
	tb.Helper()
	client, err := lib.NewClient(opt)
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return client
}

// over makes a transport over client, for its caller to close.
func over(tb testing.TB, client lib.Client, opts ...redlatch.Option) transport.Transport {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	tr, err := newTransport(ctx, client, opts...)
	require.NoError(tb, err)
	return tr
}

// newTransport is New, for the transport that the Redlatch client has.
func newTransport(ctx context.Context, client lib.Client, opts ...redlatch.Option) (transport.Transport, error) {
	c, err := rueidis.New(ctx, client, opts...)
	if err != nil {
		return nil, err
	}
	return engine.EngineOf(c).Transport, nil
}

// overSentinels makes a transport to the master that Sentinels name, for its caller to
// close.
func overSentinels(tb testing.TB, opt lib.ClientOption) transport.Transport {
	tb.Helper()
	c, err := rueidis.NewSentinel(opt)
	require.NoError(tb, err)
	return engine.EngineOf(c).Transport
}

// opened is over, closed with the test.
func opened(tb testing.TB, client lib.Client, opts ...redlatch.Option) transport.Transport {
	tb.Helper()
	tr := over(tb, client, opts...)
	tb.Cleanup(func() { assert.NoError(tb, tr.Close()) })
	return tr
}

// outcome is what a call ended with.
type outcome struct {
	reply any
	err   error
}

// start starts a call.
func start(tr transport.Transport, call *transport.Call) <-chan outcome {
	came := make(chan outcome, 1)
	tr.Start(call, func(reply any, err error) { came <- outcome{reply, err} })
	return came
}

// do runs a command with one key.
func do(tr transport.Transport, command, key string, args ...any) (any, error) {
	o := <-start(tr, &transport.Call{Command: command, NumKeys: 1, Args: append([]any{key}, args...)})
	return o.reply, o.err
}

// class is which of the contract's errors err is, "" for none.
func class(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, transport.ErrUncertain):
		return "uncertain"
	case errors.Is(err, transport.ErrNotSent):
		return "not sent"
	}
	return err.Error()
}

// subscribe makes a subscription that ends with the test.
func subscribe(tb testing.TB, tr transport.Transport, channel string) transport.Subscription {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	sub, err := tr.Subscribe(ctx, channel)
	require.NoError(tb, err)
	tb.Cleanup(sub.Close)
	return sub
}

// event waits for the next event.
func event(tb testing.TB, sub transport.Subscription) transport.Event {
	tb.Helper()
	select {
	case e, ok := <-sub.Events():
		require.True(tb, ok, "the subscription has failed: %v", sub.Err())
		return e
	case <-time.After(30 * time.Second):
		require.Fail(tb, "no event")
		return transport.Event{}
	}
}
