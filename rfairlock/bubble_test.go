package rfairlock_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// counting is a transport that counts scripts. Tests may replace its calls.
type counting struct {
	*redisconn.Redigo
	n, beats, giveUps atomic.Int64                                         // scripts run by waiters and holders, heartbeats, and departures
	intercept         func(call *transport.Call, done transport.Done) bool // reports whether it ends the call
	subscribe         func(ctx context.Context) error
	subscribed        atomic.Int64
	once              atomic.Pointer[replaced]

	mu      sync.Mutex // guards the fields below
	stalls  bool
	delayed []func()
}

// replaced is called instead of the next call to a script.
type replaced struct {
	script *transport.Script
	do     func(call *transport.Call, done transport.Done)
}

func (c *counting) Start(call *transport.Call, done transport.Done) {
	switch call.Script {
	case nil, luasrc.FairEvict, luasrc.FairNudge:
	case luasrc.FairHeartbeat:
		c.beats.Add(1)
	case luasrc.FairGiveUp:
		c.giveUps.Add(1)
		c.n.Add(1)
	default:
		c.n.Add(1)
	}
	if r := c.once.Load(); r != nil && call.Script == r.script && c.once.CompareAndSwap(r, nil) {
		r.do(call, done)
		return
	}
	if !c.delays(call, done) && (c.intercept == nil || !c.intercept(call, done)) {
		c.Redigo.Start(call, done)
	}
}

func (c *counting) delays(call *transport.Call, done transport.Done) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalls {
		sent := faketransport.InFlight(call)
		c.delayed = append(c.delayed, func() { c.Redigo.Start(sent, done) })
	}
	return c.stalls
}

// onNext replaces the next call to a script.
func (c *counting) onNext(script *transport.Script, do func(call *transport.Call, done transport.Done)) {
	c.once.Store(&replaced{script, do})
}

// holdReply runs the next call to a script, but delays its end until the test calls end. The call
// then returns the error, or the reply if the error is nil.
func (c *counting) holdReply(script *transport.Script) (end func(err error)) {
	ended := make(chan error)
	c.onNext(script, func(call *transport.Call, done transport.Done) {
		c.Redigo.Start(call, func(reply any, err error) {
			go func() {
				if lost := <-ended; lost != nil {
					reply, err = nil, lost
				}
				done(reply, err)
			}()
		})
	})
	return func(err error) { ended <- err }
}

// stall delays all calls until resume.
func (c *counting) stall() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls = true
	return func() {
		c.mu.Lock()
		delayed := c.delayed
		c.stalls, c.delayed = false, nil
		c.mu.Unlock()
		for _, start := range delayed {
			start()
		}
	}
}

func (c *counting) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if c.subscribe != nil {
		if err := c.subscribe(ctx); err != nil {
			return nil, err
		}
	}
	c.subscribed.Add(1)
	return c.Redigo.Subscribe(ctx, channel)
}

// during returns the number of scripts that run within d.
func (c *counting) during(d time.Duration) int64 {
	synctest.Wait()
	before := c.n.Load()
	time.Sleep(d)
	synctest.Wait()
	return c.n.Load() - before
}

// countTo returns a transport to an in-memory server.
func countTo(srv *redistest.MiniServer) *counting {
	return &counting{Redigo: redisconn.NewRedigo(redisconn.Config{
		Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
		DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})}
}

// over opens a client on a transport.
func over(t *testing.T, tr transport.Transport, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.NewWithTransport(tr, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// fakeClient opens another client for a server in a bubble.
func fakeClient(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) (*redlatch.Client, *counting) {
	t.Helper()
	calls := countTo(srv)
	return over(t, calls, opts...), calls
}

// inBubble starts a server and a client in a bubble.
func inBubble(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client, *counting) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	client, calls := fakeClient(t, srv, opts...)
	return srv, client, calls
}

// waitTogether calls Lock n times, and returns a function that cancels the calls.
func waitTogether(t *testing.T, l *rlock.Lock, n int, opts ...rlock.Option) (all []*waiter, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	for range n {
		all = append(all, await(ctx, l, opts...))
		synctest.Wait()
	}
	return all, func() {
		cancel()
		for _, w := range all {
			<-w.done
		}
	}
}

// skew replaces the replies to TIME, so that the server's clock differs from this machine's.
type skew struct {
	ahead, slow time.Duration // slow delays the reply
	fail        atomic.Pointer[error]
	asked       atomic.Int64
}

func (k *skew) intercept(call *transport.Call, done transport.Done) bool {
	if call.Command != "TIME" {
		return false
	}
	k.asked.Add(1)
	if fail := k.fail.Load(); fail != nil {
		done(nil, *fail)
		return true
	}
	call.Claim(0)
	go func() {
		time.Sleep(k.slow)
		us := time.Now().Add(k.ahead).UnixMicro()
		done([]any{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)}, nil)
	}()
	return true
}

// host is a transport on a machine with a skewed clock. It counts subscribers itself, since the
// in-memory server lacks ROLE.
type host struct {
	*counting
	counts func() // called before it counts, if set

	mu   sync.Mutex // guards conn
	conn redis.Conn
}

func newHost(t *testing.T, srv *redistest.MiniServer, calls *counting) *host {
	t.Helper()
	return &host{counting: calls, conn: srv.Dial(t)}
}

func (h *host) Listeners(_ context.Context, channels ...string) ([]int64, error) {
	if h.counts != nil {
		h.counts()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	reply, err := redis.Values(h.conn.Do("PUBSUB", redis.Args{}.Add("NUMSUB").AddFlat(channels)...))
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(channels))
	for i := range counts {
		if counts[i], err = redis.Int64(reply[2*i+1], nil); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// hostOf opens a client on a host; the server's clock is ahead of the host's.
func hostOf(t *testing.T, srv *redistest.MiniServer, ahead time.Duration, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	calls := countTo(srv)
	calls.intercept = (&skew{ahead: ahead}).intercept
	return over(t, newHost(t, srv, calls), opts...)
}

// process is a client like the one that hostOf returns, on a network that a test can disturb.
type process struct {
	srv    *redistest.MiniServer
	calls  *counting
	client *redlatch.Client

	mu    sync.Mutex // guards the fields below
	away  bool
	conns []net.Conn
}

func newProcess(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) *process {
	t.Helper()
	p := &process{srv: srv}
	p.calls = &counting{Redigo: redisconn.NewRedigo(redisconn.Config{
		Dial: p.dial, Command: time.Minute, Lease: time.Hour,
		DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})}
	p.client = over(t, newHost(t, srv, p.calls), append(opts,
		redlatch.WithCommandTimeout(time.Minute), redlatch.WithWatchdogTimeout(time.Hour))...) // no timeouts while paused
	return p
}

func (p *process) dial(ctx context.Context) (redis.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return nil, errors.New("away")
	}
	c, err := p.srv.DialNet(ctx, "", "")
	if err != nil {
		return nil, err
	}
	p.conns = append(p.conns, c)
	return redis.NewConn(c, 0, 0), nil
}

// disconnect closes the connections. If away is true, it prevents new ones until it is called again.
func (p *process) disconnect(away bool) {
	synctest.Wait()
	p.mu.Lock()
	p.away = away
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	synctest.Wait()
}

// pause keeps the process from sending for d. Its connections stay open.
func (p *process) pause(d time.Duration) { time.AfterFunc(d, p.calls.stall()) }

// waitedFor returns a hold that had to wait, and the owner with which it was queued.
func waitedFor(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock, opts ...rlock.Option) (*rlock.Hold, string) {
	t.Helper()
	holdByHand(t, srv, l.Name(), time.Hour)
	w := await(t.Context(), l, opts...)
	synctest.Wait()
	queue := queueOf(t, srv, l.Name())
	require.Len(t, queue, 1)
	freeByHand(t, srv, l.Name())
	return w.acquired(t, time.Second), queue[0]
}

// channelsOf returns the channels that have a subscriber.
func channelsOf(t *testing.T, srv *redistest.MiniServer) []string {
	t.Helper()
	synctest.Wait()
	channels, err := redis.Strings(srv.Do(t, "PUBSUB", "CHANNELS"), nil)
	require.NoError(t, err)
	return channels
}

// inTurn queues n waiters, which belong to the clients in turn.
func inTurn(ctx context.Context, n int, clients ...*redlatch.Client) []*waiter {
	var all []*waiter
	for i := range n {
		all = append(all, await(ctx, rfairlock.New(clients[i%len(clients)], "job")))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
	}
	return all
}
