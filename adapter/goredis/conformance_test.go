package goredis

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// over makes the transport over a client that is closed with the test.
func over(tb testing.TB, client redis.UniversalClient, opts ...redlatch.Option) transport.Transport {
	tb.Helper()
	tb.Cleanup(func() { assert.NoError(tb, client.Close(), "the transport must not close it") })
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	tr, err := newTransport(ctx, client, opts...)
	require.NoError(tb, err)
	return tr
}

// newTransport is New, for the transport that the Redlatch client has.
func newTransport(ctx context.Context, client redis.UniversalClient, opts ...redlatch.Option) (transport.Transport, error) {
	c, err := New(ctx, client, opts...)
	if err != nil {
		return nil, err
	}
	return engine.EngineOf(c).Transport, nil
}

// reckless are the options that do most harm, had they any effect: commands would be
// repeated, deadlines ignored, and one connection is all that there is.
func reckless(addr string) *redis.Options {
	return &redis.Options{Addr: addr, MaxRetries: 10, ReadTimeout: -1, PoolSize: 1, MaxActiveConns: 1, PipelinePoolSize: -1}
}

func TestConformsOnOneServer(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := breakable.Behind(proxy, server)
		h.New = func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewClient(reckless(proxy.Addr())))
		}
		return h
	})
}

// failoverOptions are those of a client to Sentinels, whose connections to the master
// go through proxy.
func failoverOptions(set *redistest.Sentinels, master string, proxy *redistest.Proxy) *redis.FailoverOptions {
	opt := &redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: set.Addrs(),
		MaxRetries: 10, ReadTimeout: 5 * time.Second, PoolSize: 1,
	}
	if proxy != nil {
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == master {
				addr = proxy.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	return opt
}

func TestConformsOnAMasterOfSentinels(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute)
	master := set.Master(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		proxy := redistest.NewProxy(t, master.Addr())
		h := breakable.Harness(proxy)
		h.New = func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, redis.NewFailoverClient(failoverOptions(set, master.Addr(), proxy)))
		}
		h.Do = master.Do
		h.Stop, h.Start = breakable.Outage(proxy, master.Do, "SCRIPT", "FLUSH")
		return h
	})
}
