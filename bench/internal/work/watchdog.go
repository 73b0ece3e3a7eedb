package work

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/bench/internal/contest"
)

const (
	// lookEvery and lookAt are how often leases are looked at, and how many at once.
	lookEvery = 250 * time.Millisecond
	lookAt    = 500
)

// watchdog holds many locks with leases that are renewed, and looks at them on the
// server, some at a time.
type watchdog struct {
	locker   contest.Locker
	names    []string
	cancel   context.CancelFunc
	done     chan struct{}
	failed   failure
	counting atomic.Bool
	since    usage
	before   runtime.MemStats

	least, lease, gone atomic.Int64 // milliseconds, milliseconds, leases
}

func startWatchdog(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	locker, err := c.Open(ctx, contest.Settings{Addr: spec.Addr})
	if err != nil {
		return nil, err
	}
	w := &watchdog{locker: locker, names: numbered(spec.Key, spec.Goroutines), done: make(chan struct{})}
	heap(&w.before)
	if err := takeAll(ctx, locker, w.names); err != nil {
		return nil, errors.Join(err, locker.Close())
	}
	conn, err := redis.Dial("tcp", spec.Addr)
	if err != nil {
		return nil, errors.Join(err, locker.Close())
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		defer conn.Close() //nolint:errcheck // it was only read from
		w.look(ctx, conn)
	}()
	return w, nil
}

// look goes through the locks again and again.
func (w *watchdog) look(ctx context.Context, conn redis.Conn) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for at := 0; ; at += lookAt {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.lookFrom(conn, at); err != nil {
			w.failed.set(err)
			return
		}
	}
}

func (w *watchdog) lookFrom(conn redis.Conn, at int) error {
	n := min(lookAt, len(w.names))
	for i := range n {
		if err := conn.Send("PTTL", w.locker.RedisKey(w.names[(at+i)%len(w.names)])); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	for range n {
		left, err := redis.Int64(conn.Receive())
		if err != nil {
			return err
		}
		w.seen(left)
	}
	return nil
}

// seen takes note of a lease. The longest is what was taken for the whole lease.
func (w *watchdog) seen(left int64) {
	w.lease.Store(max(w.lease.Load(), left))
	if !w.counting.Load() {
		return
	}
	if left < 0 {
		w.gone.Add(1)
		return
	}
	w.least.Store(min(w.least.Load(), left))
}

func (w *watchdog) begin() {
	w.since = now()
	w.least.Store(int64(longLease / time.Millisecond))
	w.counting.Store(true)
}

func (w *watchdog) end() Values {
	w.counting.Store(false)
	v := w.since.per(float64(len(w.names)))
	delete(v, Rate)
	v[CPU] /= time.Since(w.since.at).Seconds()
	v[Allocs] /= time.Since(w.since.at).Seconds()
	v[Oldest] = float64(w.lease.Load()-w.least.Load()) / 1000
	v[Gone] = float64(w.gone.Load())
	var m runtime.MemStats
	heap(&m)
	v[Heap] = (float64(m.HeapAlloc) - float64(w.before.HeapAlloc)) / float64(len(w.names))
	return v
}

func (w *watchdog) close() error {
	w.cancel()
	<-w.done
	return errors.Join(w.failed.get(), w.locker.Close())
}
