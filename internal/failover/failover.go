// Package failover is a transport to the master that Redis Sentinels name, over
// connections that others make. It listens to what every Sentinel publishes about the master
// on the servers themselves, and drops its connections to a former master immediately.
//
//	connected ──another master named, READONLY, silence──▶ ask ──same──▶ connected
//	    ▲                                                   │
//	    └──────────── dial the server that they name ◀─another─┘
//
// The right to listen is &__sentinel__:hello. Without it the Sentinels are asked every
// second. One goroutine watches, from the first call or subscription until Close, which
// waits for it.
package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	// Silence is how long no Sentinel may be heard before they are asked.
	Silence = 2500 * time.Millisecond
	// AskEvery is how often they are asked while none is heard.
	AskEvery = time.Second
	// askBound bounds one question.
	askBound = 3 * time.Second
	// doubtful is how long Sentinels may go on naming the old master after one of them
	// has named another.
	doubtful = 10 * time.Second
	// retryMin and retryMax bound the pause between two questions in that time: see
	// clock.Backoff.
	retryMin, retryMax = 50 * time.Millisecond, 500 * time.Millisecond
)

// Config says which master is watched, and how it is reached. All fields are required.
type Config struct {
	// Master returns the address, host:port, of the server that is master now.
	Master func(ctx context.Context) (addr string, err error)
	// Dial makes a connection to the server at addr, one that Master has returned, that
	// is ready to use.
	Dial redisconn.NodeDial
	// Conn is what all connections have in common. Its Dial is not used; its Logger
	// reports switches.
	Conn redisconn.Config
}

// dial connects to the server that is master now, unless it is replaced meanwhile.
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
	conn, err := f.cfg.Dial(ctx, addr)
	return c.made(conn, redisconn.AtNode(addr, err))
}

// Failover is the transport to a master that Sentinels may replace. A connection to a
// former master works, and takes locks that no other client sees, for as long as it
// is not closed: so Failover watches which server is master. It is safe for
// concurrent use.
type Failover struct {
	*redisconn.Redigo
	cfg  Config
	live live

	ctx     context.Context //nolint:containedctx // ends with Close
	cancel  context.CancelFunc
	once    sync.Once      // begins to watch
	wg      sync.WaitGroup // watch
	suspect chan struct{}  // cap 1: a reply came that no master gives
	refused sync.Once      // logs a server that permits no subscription to the Sentinels
}

var (
	_ transport.Transport   = (*Failover)(nil)
	_ transport.Fencer      = (*Failover)(nil)
	_ transport.Reconnecter = (*Failover)(nil)
	_ transport.Counter     = (*Failover)(nil)
	_ transport.Replicator  = (*Failover)(nil)
	_ transport.Leader      = (*Failover)(nil)
)

// New returns a transport that connects, and begins to watch, on first use.
func New(cfg Config) *Failover {
	f := &Failover{cfg: cfg, suspect: make(chan struct{}, 1)}
	f.cfg.Conn.Dial = f.dial
	f.Redigo = redisconn.NewRedigo(f.cfg.Conn)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Start is part of transport.Transport.
func (f *Failover) Start(call *transport.Call, done transport.Done) {
	f.once.Do(f.begin)
	f.Redigo.Start(call, f.heeding(done))
}

// Leads is part of transport.Leader.
func (f *Failover) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(f)
}

// Lead is part of transport.Leader.
func (f *Failover) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
	f.once.Do(f.begin)
	f.Redigo.Lead(ctx, call, f.heeding(done), caller)
}

// heeding returns done that first looks at what the server says.
func (f *Failover) heeding(done transport.Done) transport.Done {
	return func(reply any, err error) {
		f.heedRefusal(err)
		done(reply, err)
	}
}

// heedRefusal asks for the master when a server says that it is none.
func (f *Failover) heedRefusal(err error) {
	if err != nil && transport.IsCode(err, "READONLY") {
		select {
		case f.suspect <- struct{}{}:
		default: // it is suspected already
		}
	}
}

// Replicate is part of transport.Replicator. Its connection leads to the master as the
// others do, and is cut as they are when the Sentinels name another one.
func (f *Failover) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	f.once.Do(f.begin)
	f.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
		f.heedRefusal(err)
		done(reply, have, err)
	})
}

// Subscribe is part of transport.Transport.
func (f *Failover) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	f.once.Do(f.begin)
	return f.Redigo.Subscribe(ctx, channel)
}

// Close is part of transport.Transport.
func (f *Failover) Close() error {
	f.once.Do(func() {}) // it never begins now
	f.cancel()
	err := f.Redigo.Close()
	f.wg.Wait()
	return err
}

func (f *Failover) begin() { f.wg.Go(f.watch) }

// watch runs until Close.
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
				f.settle(n.master) // it may have been switched since the connections were made
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

// unsubscribed asks, for want of a subscription, once, after a pause.
func (f *Failover) unsubscribed(err error) {
	var refusal *transport.ServerError
	if errors.As(err, &refusal) && !errors.Is(err, transport.ErrNotSent) {
		f.refused.Do(func() {
			f.cfg.Conn.Logger.Warn("redlatch: cannot subscribe to the Sentinels' messages: they are asked for the master every second",
				"channel", Channel, "error", err)
		})
	}
	if clock.Sleep(f.ctx, AskEvery) {
		f.check()
	}
}

// settle asks until connections to a former master have been cut, and those that were
// made instead lead to the one that is named now. The Sentinels that are asked may not
// know yet. If a Sentinel says that addr is the master's, and all connections lead
// there, that is enough; but it may call it otherwise than we do. So it gives up after
// a while.
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

// check asks for the master, cuts the connections that lead elsewhere, and
// reports whether there were any. Addr is "" when no master is named just now.
func (f *Failover) check() (addr string, cut bool) {
	ctx, cancel := context.WithTimeout(f.ctx, askBound)
	defer cancel()
	addr, err := f.cfg.Master(ctx)
	if err != nil {
		return "", false
	}
	n := f.live.cut(addr)
	if n > 0 {
		f.cfg.Conn.Logger.Warn("redlatch: another server is master now, connections to the former one are cut",
			"master", addr, "connections", n)
	}
	return addr, n > 0
}
