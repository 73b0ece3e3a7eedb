package rueidis_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
)

// The options would retry or delay calls. Connections are cut throughout the test.
func TestClientOptionsDoNotAffectCalls(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 250
	for name, change := range map[string]func(*lib.ClientOption){
		"defaults":        func(*lib.ClientOption) {},
		"short lives":     func(o *lib.ClientOption) { o.ConnLifetime = 50 * time.Millisecond },
		"no pipelines":    func(o *lib.ClientOption) { o.DisableAutoPipelining = true },
		"delayed flushes": func(o *lib.ClientOption) { o.MaxFlushDelay = time.Millisecond },
		"pool of three":   func(o *lib.ClientOption) { o.BlockingPoolSize = 3 },
		"cache by prefix": func(o *lib.ClientOption) { o.ClientTrackingOptions = []string{"PREFIX", "", "BCAST"} },
		"no multiplexing": func(o *lib.ClientOption) { o.PipelineMultiplex = -1 },
		"client name":     func(o *lib.ClientOption) { o.ClientName = "somebody" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			proxy := redistest.NewProxy(t, server.Addr())
			opt := plainly(proxy.Addr())
			change(&opt)
			tr := opened(t, clientOf(t, opt))
			key := redistest.Key(t)
			var mu sync.Mutex
			outcomes := map[string]int{}
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					for i := range calls {
						if caller == 0 && i%50 == 49 {
							proxy.Reset()
						}
						_, err := do(tr, "INCR", key)
						mu.Lock()
						outcomes[class(err)]++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			ran, ok := server.Do(t, "INCR", key).(int64)
			require.True(t, ok)
			ran--
			t.Log(outcomes)
			assert.GreaterOrEqual(t, ran, int64(outcomes[""]))
			assert.LessOrEqual(t, ran, int64(outcomes[""]+outcomes["uncertain"]), "a call ran twice")
			assert.Equal(t, callers*calls, outcomes[""]+outcomes["uncertain"]+outcomes["not sent"], "other errors")
		})
	}
}

// The client itself would wait an hour.
func TestSilentServerEndsCallsDespiteClientTimeout(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t).Addr())
	opt := plainly(proxy.Addr())
	opt.ConnWriteTimeout, opt.Dialer.KeepAlive, opt.Dialer.Timeout = time.Hour, -1, 5*time.Second
	breakable.StopAnswering(t, proxy, over(t, clientOf(t, opt), redlatch.WithCommandTimeout(500*time.Millisecond), redlatch.WithDialTimeout(time.Second)))
}

// The client is used before, during and after the transport's life.
func TestTransportLeavesClientUsable(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := clientOf(t, plainly(server.Addr()))
	ping := func() {
		t.Helper()
		require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
	}
	ping()
	before := server.Clients(t)
	tr := over(t, client)
	subscribe(t, tr, "channel")
	_, err := do(tr, "INCR", "key")
	require.NoError(t, err)
	ping()
	assert.Equal(t, before+2, server.Clients(t), "one connection for commands and one for subscriptions")
	require.NoError(t, tr.Close())
	require.NoError(t, tr.Close())
	ping()
	assert.Eventually(t, func() bool { return server.Clients(t) == before }, 10*time.Second, 10*time.Millisecond)
}

// The client is closed before its transport.
func TestClosedClientReturnsClearError(t *testing.T) {
	t.Parallel()
	client, err := lib.NewClient(plainly(redistest.Shared(t).Addr()))
	require.NoError(t, err)
	tr := opened(t, client)
	client.Close()
	_, err = do(tr, "PING", "key")
	require.ErrorIs(t, err, transport.ErrNotSent)
	require.ErrorIs(t, err, lib.ErrClosing)
}

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	client := clientOf(t, plainly(redistest.Shared(t).Addr()))
	for want, opt := range map[string]redlatch.Option{
		"command timeout":   redlatch.WithCommandTimeout(0),
		"dial timeout":      redlatch.WithDialTimeout(0),
		"WithShardedPubSub": redlatch.WithShardedPubSub(transport.ShardingOff + 1),
	} {
		_, err := rueidis.New(t.Context(), client, opt)
		require.ErrorContains(t, err, want)
	}
	for _, opt := range []lib.ClientOption{{}, {InitAddress: []string{"a:26379"}}, {Sentinel: lib.SentinelOption{MasterSet: "m"}}} {
		_, err := rueidis.NewSentinel(opt)
		require.ErrorContains(t, err, "rueidis: NewSentinel needs")
	}
}

// The client itself would drop the connection much earlier.
func TestSlowReplyAwaitedDespiteClientTimeout(t *testing.T) {
	t.Parallel()
	redistest.InRealTime(t, "rueidis gives up after 200 ms of silence while it connects", func(tb testing.TB) {
		tb.Helper()
		proxy := redistest.NewProxy(tb, redistest.Shared(tb).Addr())
		opt := plainly(proxy.Addr())
		opt.ConnWriteTimeout, opt.Dialer.KeepAlive = 200*time.Millisecond, 100*time.Millisecond
		tr := opened(tb, clientOf(tb, opt), redlatch.WithCommandTimeout(time.Minute))
		key := redistest.Key(tb)
		_, err := do(tr, "INCR", key)
		require.NoError(tb, err)
		proxy.Blackhole(redistest.ToClient)
		came := start(tr, &transport.Call{Command: "INCR", NumKeys: 1, Args: []any{key}})
		select {
		case o := <-came:
			require.Fail(tb, "no reply", "%v", o.err)
		case <-time.After(time.Second):
		}
		proxy.Heal()
		o := <-came
		require.NoError(tb, o.err)
		assert.Equal(tb, int64(2), o.reply)
	})
}

// The test subscribes to many channels concurrently. The user has permission to subscribe to every
// other one.
func TestRefusedChannelErrorIsDistinct(t *testing.T) {
	t.Parallel()
	const channels = 60
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "default", "resetchannels", "&may:*")
	tr := opened(t, clientOf(t, plainly(server.Addr())))
	names := [2]string{"may:", "maynot:"}
	var subs [channels]transport.Subscription
	var errs [channels]error
	for range 3 {
		var wg sync.WaitGroup
		for i := range channels {
			wg.Go(func() { subs[i], errs[i] = tr.Subscribe(t.Context(), names[i%2]+strconv.Itoa(i)) })
		}
		wg.Wait()
		for i := range channels {
			if i%2 == 1 {
				require.True(t, transport.IsCode(errs[i], "NOPERM"), "%v", errs[i])
				continue
			}
			require.NoError(t, errs[i])
			require.Equal(t, int64(1), server.Do(t, "PUBLISH", names[0]+strconv.Itoa(i), "heard"))
			require.Equal(t, transport.Event{Payload: "heard"}, event(t, subs[i]))
			subs[i].Close()
		}
	}
}

// It runs U34 and U4 with client options that would wait an hour and would retry calls in flight
// when a connection reaches its maximum age.
func TestClientOptionsDoNotAffectLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	opt := plainly(proxy.Addr())
	opt.ConnWriteTimeout, opt.Dialer.KeepAlive, opt.ConnLifetime = time.Hour, -1, 200*time.Millisecond
	locksuite.OnServer(server, sharing(clientOf(t, opt))).LeavesInTime(t, func() { proxy.Blackhole(redistest.ToClient) }, func() {
		proxy.Reset()
		proxy.Heal()
	})
}

func TestNewSurvivesBadClients(t *testing.T) {
	t.Parallel()
	works := clientOf(t, plainly(redistest.Shared(t).Addr()))
	require.PanicsWithValue(t, "rueidis: nil Context", func() { _, _ = rueidis.New(nil, works) }) //nolint:staticcheck // the mistake
	for want, c := range map[string]lib.Client{
		"needs a client": nil, "client mode": ofMode{works, ""}, "to NewSentinel": ofMode{works, lib.ClientModeSentinel},
	} {
		tr, err := newTransport(t.Context(), c)
		require.ErrorContains(t, err, "rueidis: ")
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, redlatch.ErrInvalid, want)
		require.Nil(t, tr)
	}
	_, err := rueidis.NewSentinel(lib.ClientOption{InitAddress: []string{"127.0.0.1:26379"}})
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tr, err := newTransport(ended, works)
	require.NoError(t, err, "no query is sent")
	_, err = do(tr, "GET", "key")
	require.NoError(t, err)
	require.NoError(t, tr.Close())

	closed, err := lib.NewClient(plainly(redistest.Shared(t).Addr()))
	require.NoError(t, err)
	closed.Close()
	for _, c := range []lib.Client{closed, ofMode{closed, lib.ClientModeCluster}} {
		tr, err := newTransport(t.Context(), c, nil, redlatch.WithShardedPubSub(transport.ShardingOn))
		require.NoError(t, err)
		_, err = do(tr, "GET", "key")
		require.ErrorIs(t, err, transport.ErrNotSent)
		_, err = tr.Subscribe(ended, "channel")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, tr.Close())
	}
	_, err = rueidis.New(t.Context(), ofMode{closed, lib.ClientModeCluster})
	require.ErrorIs(t, err, lib.ErrClosing)
}

// ofMode is a client that reports a mode.
type ofMode struct {
	lib.Client
	mode lib.ClientMode
}

func (c ofMode) Mode() lib.ClientMode { return c.mode }

func TestNewSentinelSurvivesBadAddresses(t *testing.T) {
	t.Parallel()
	none := lib.SentinelOption{MasterSet: "m"}
	for _, addrs := range [][]string{{""}, {"127.0.0.1:1"}, {"no such host:1", "\x00"}} {
		tr := overSentinels(t, lib.ClientOption{InitAddress: addrs, Sentinel: none, PipelineMultiplex: 255, RingScaleEachConn: -1})
		_, err := do(tr, "GET", "key")
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.NoError(t, tr.Close())
	}
}

func TestDialerSurvivesBadInput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, opt := range []lib.ClientOption{{}, {PipelineMultiplex: 255, RingScaleEachConn: -1}, {InitAddress: []string{"a:1"}, ReplicaOnly: true}} {
		for _, addr := range []string{"", "127.0.0.1:1", "\x00"} {
			conn, err := rueidis.Dialer(opt)(ctx, addr)
			require.Error(t, err)
			require.Nil(t, conn)
		}
	}
}
