package loss

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// Client is a lock client that renews its leases, configured as its documentation recommends.
type Client struct {
	Name string
	// Tells names the signals by which a holder can notice that its lock is lost.
	Tells []string

	each int // locks per connected client
	open func(ctx context.Context, addr string, lease time.Duration) (holder, error)
}

// holder is safe for concurrent use.
type holder interface {
	// take acquires the lock called name and returns a signal for each of Client.Tells.
	take(ctx context.Context, name string) ([]signal, error)
	// key returns the key that exists on the server while name is held.
	key(name string) string
	close()
}

// Clients returns all clients, Redlatch first.
func Clients() []Client {
	return []Client{
		{Name: "redlatch", Tells: []string{"Hold.Err"}, each: 4, open: openRedlatch},
		{Name: "rueidislock", Tells: []string{"context"}, each: 20, open: openRueidis},
		{Name: "redsync", Tells: []string{"Until", "Extend"}, each: 20, open: openRedsync},
	}
}

// Each client holds few locks, because a client renews locks together.
type redlatchHolder struct{ client *redlatch.Client }

func openRedlatch(ctx context.Context, addr string, lease time.Duration) (holder, error) {
	client, err := redlatch.Open(ctx, "redis://"+addr, redlatch.WithWatchdogTimeout(lease),
		redlatch.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	return redlatchHolder{client}, nil
}

func (h redlatchHolder) take(ctx context.Context, name string) ([]signal, error) {
	hold, err := rlock.New(h.client, name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return []signal{func() bool { return hold.Err() != nil }}, nil
}

func (h redlatchHolder) key(name string) string { return name }

func (h redlatchHolder) close() { _ = h.client.Close() }

// rueidisHolder is given a second to acquire a lock, because trials fail with the default of 20 ms.
type rueidisHolder struct{ locker rueidislock.Locker }

func openRueidis(_ context.Context, addr string, lease time.Duration) (holder, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    lease,
		TryNextAfter:   time.Second,
	})
	if err != nil {
		return nil, err
	}
	return rueidisHolder{l}, nil
}

func (h rueidisHolder) take(ctx context.Context, name string) ([]signal, error) {
	held, _, err := h.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return []signal{func() bool { return held.Err() != nil }}, nil
}

func (h rueidisHolder) key(name string) string { return "rueidislock:0:" + name }
func (h rueidisHolder) close()                 { h.locker.Close() }

// redsyncHolder extends its locks after every third of the lease.
type redsyncHolder struct {
	client *goredislib.Client
	sync   *redsync.Redsync
	lease  time.Duration
	ctx    context.Context //nolint:containedctx // stops the goroutines that extend locks
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

var silenceGoRedis = sync.OnceFunc(logging.Disable)

func openRedsync(_ context.Context, addr string, lease time.Duration) (holder, error) {
	silenceGoRedis()
	h := &redsyncHolder{client: goredislib.NewClient(&goredislib.Options{Addr: addr}), lease: lease}
	h.sync = redsync.New(goredis.NewPool(h.client))
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

func (h *redsyncHolder) take(ctx context.Context, name string) ([]signal, error) {
	m := h.sync.NewMutex(name, redsync.WithExpiry(h.lease))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	// A Mutex must not be used concurrently, so the signals read copies.
	var until atomic.Pointer[time.Time]
	var failed atomic.Bool
	publish := func() { t := m.Until(); until.Store(&t) }
	publish()
	h.loops.Go(func() {
		tick := time.NewTicker(h.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-h.ctx.Done():
				return
			case <-tick.C:
			}
			if ok, err := m.ExtendContext(h.ctx); err == nil && ok {
				publish()
			} else {
				failed.Store(true)
			}
		}
	})
	return []signal{func() bool { return time.Now().After(*until.Load()) }, failed.Load}, nil
}

func (h *redsyncHolder) key(name string) string { return name }

func (h *redsyncHolder) close() {
	h.cancel()
	_ = h.client.Close()
	h.loops.Wait()
}
