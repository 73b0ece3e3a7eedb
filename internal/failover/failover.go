// Package failover implements a transport to the master that Redis Sentinels name. It subscribes to
// the messages that the Sentinels publish on the servers, so that it can close connections to a
// former master immediately. If it isn't permitted to subscribe, it queries the Sentinels every
// second. A goroutine watches the master from the first call or subscription until Close, which
// waits for it to end.
//
//	connected ──another master named, READONLY, silence──▶ query ──same──▶ connected
//	    ▲                                                   │
//	    └──────────── dial the master that they name ◀─another─┘
package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	// Silence is how long messages from the Sentinels may be missing before the Sentinels are
	// queried.
	Silence = 2500 * time.Millisecond
	// AskEvery is the interval between queries until a message arrives.
	AskEvery = time.Second
	askBound = 3 * time.Second
	// doubtful is how long Sentinels may still name a former master.
	doubtful = 10 * time.Second
	// retryMin and retryMax bound the pause between queries during that time.
	retryMin, retryMax = 50 * time.Millisecond, 500 * time.Millisecond
)

// Config configures a [Failover]. All fields are required.
type Config struct {
	// Master returns the current master's address, host:port.
	Master func(ctx context.Context) (addr string, err error)
	Dial   redisconn.NodeDial
	// Conn configures all connections. Its Dial is not used.
	Conn redisconn.Config
}

// dial connects to the master. It fails if the master is replaced during the dial.
func (f *Failover) dial(ctx context.Context) (redis.Conn, error) {
	cuts := f.live.cutsSoFar()
	addr, err := f.cfg.Master(ctx)
	if err != nil {
		return nil, fmt.Errorf("redlatch: the Sentinels do not name the master: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := f.live.begin(addr, cuts, cancel)
	if err != nil {
		return nil, err
	}
	return c.made(f.cfg.Dial(ctx, addr))
}

// Failover is a transport to a master that the Sentinels may replace. Because a former master may
// still grant locks, Failover watches which server is the master. It is safe for concurrent use.
type Failover struct {
	*redisconn.Redigo
	cfg  Config
	live live

	ctx     context.Context //nolint:containedctx // ends with Close
	cancel  context.CancelFunc
	once    sync.Once
	wg      sync.WaitGroup
	suspect chan struct{} // cap 1; receives a value when a reply shows that the server is not a master
	refused sync.Once
}

var (
	_ transport.Transport   = (*Failover)(nil)
	_ transport.Fencer      = (*Failover)(nil)
	_ transport.Reconnecter = (*Failover)(nil)
	_ transport.Counter     = (*Failover)(nil)
	_ transport.Replicator  = (*Failover)(nil)
	_ builtin.Leader        = (*Failover)(nil)
)

// New returns a Failover, which connects and starts to watch the master when it is first used.
func New(cfg Config) *Failover {
	f := &Failover{cfg: cfg, suspect: make(chan struct{}, 1)}
	f.cfg.Conn.Dial = f.dial
	f.Redigo = redisconn.NewRedigo(f.cfg.Conn)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Start implements transport.Transport.
func (f *Failover) Start(call *transport.Call, done transport.Done) {
	f.once.Do(f.begin)
	f.Redigo.Start(call, f.heeding(done))
}

// Leads implements builtin.Leader.
func (f *Failover) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(f)
}

// Lead implements builtin.Leader.
func (f *Failover) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
	f.once.Do(f.begin)
	f.Redigo.Lead(ctx, call, f.heeding(done), caller)
}

func (f *Failover) heeding(done transport.Done) transport.Done {
	return func(reply any, err error) {
		f.heedRefusal(err)
		done(reply, err)
	}
}

func (f *Failover) heedRefusal(err error) {
	if err != nil && transport.IsCode(err, "READONLY") {
		select {
		case f.suspect <- struct{}{}:
		default:
		}
	}
}

// Replicate implements transport.Replicator.
func (f *Failover) Replicate(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
	f.once.Do(f.begin)
	f.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
		f.heedRefusal(err)
		done(reply, have, err)
	})
}

// Subscribe implements transport.Transport.
func (f *Failover) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	f.once.Do(f.begin)
	return f.Redigo.Subscribe(ctx, channel)
}

// Close implements transport.Transport.
func (f *Failover) Close() error {
	f.once.Do(func() {}) // watch must not start after this
	f.cancel()
	err := f.Redigo.Close()
	f.wg.Wait()
	return err
}

func (f *Failover) begin() { f.wg.Go(f.watch) }

func (f *Failover) watch() {
	l := newHelloListener()
	stop := f.Listen(Channel, l)
	defer func() { stop() }()
	quiet := time.NewTimer(Silence)
	defer quiet.Stop()
	for {
		select {
		case <-l.wake:
			n := l.take()
			if n.failed != nil {
				f.unsubscribed(n.failed)
				stop = f.Listen(Channel, l)
			}
			if n.received {
				quiet.Reset(Silence)
			}
			if n.master != "" {
				f.settle(n.master) // the connections may be older than the failover
			}
		case <-f.suspect:
			f.settle("")
		case <-quiet.C:
			f.check()
			quiet.Reset(AskEvery)
		case <-f.ctx.Done():
			return
		}
	}
}

func (f *Failover) unsubscribed(err error) {
	var refusal *transport.ServerError
	if errors.As(err, &refusal) && !errors.Is(err, transport.ErrNotSent) {
		f.refused.Do(func() {
			f.cfg.Conn.Logger.Warn("redlatch: cannot subscribe to the Sentinels' messages: polling them for the master every second",
				"channel", Channel, "error", err)
		})
	}
	if clock.Sleep(f.ctx, AskEvery) {
		f.check()
	}
}

// settle queries the Sentinels until all connections lead to the new master. The new master is
// addr, which a Sentinel has named, or the master that they name once connections to another server
// have been closed. settle stops after a while, since a Sentinel may use a different address for
// the master than we do.
func (f *Failover) settle(addr string) {
	pause, cut := clock.Backoff{Min: retryMin, Max: retryMax}, false
	for until := time.Now().Add(doubtful); time.Now().Before(until); {
		now, some := f.check()
		cut = cut || some
		if cut && f.live.leadTo(now) || f.live.leadTo(addr) {
			return
		}
		if !clock.Sleep(f.ctx, pause.Next()) {
			return
		}
	}
}

// check queries the Sentinels, closes the connections to servers other than the master, and reports
// whether there were any. addr is "" if the query failed.
func (f *Failover) check() (addr string, cut bool) {
	ctx, cancel := context.WithTimeout(f.ctx, askBound)
	defer cancel()
	addr, err := f.cfg.Master(ctx)
	if err != nil {
		return "", false
	}
	n := f.live.cut(addr)
	if n > 0 {
		f.cfg.Conn.Logger.Warn("redlatch: master changed: closing connections to the former master",
			"master", addr, "connections", n)
	}
	return addr, n > 0
}
