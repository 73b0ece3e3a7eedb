package work

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/bench/internal/contest"
)

const (
	longLease = time.Hour
	takers    = 64
)

var errFreed = errors.New("a waiter acquired a lock that was never released")

// Another client holds the lock with a fixed lease, so that only the waiters cause load.
type idle struct {
	common
	holder, waiter contest.Locker
	probe          redis.Conn
	connections    float64
	waiters        float64
	before         runtime.MemStats
	goroutines     int
}

func startIdle(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	i := &idle{waiters: float64(spec.Goroutines)}
	var err error
	if i.holder, err = c.Open(ctx, contest.Settings{Addr: spec.Addr, Lease: longLease}); err != nil {
		return nil, err
	}
	if err := takeAll(ctx, i.holder, []string{spec.Key}); err != nil {
		return nil, err
	}
	if err := i.ask(spec.Addr); err != nil {
		return nil, err
	}
	if i.waiter, err = c.Open(ctx, contest.Settings{Addr: spec.Addr}); err != nil {
		return nil, err
	}
	ctx, i.cancel = context.WithCancel(ctx)
	i.goroutines = runtime.NumGoroutine()
	heap(&i.before)
	for range spec.Goroutines {
		key := i.waiter.Key(spec.Key)
		i.done.Go(func() { i.wait(ctx, key) })
	}
	return i, nil
}

func (i *idle) ask(addr string) (err error) {
	if i.probe, err = redis.Dial("tcp", addr); err == nil {
		i.connections, err = connected(i.probe)
	}
	return err
}

func connected(conn redis.Conn) (float64, error) {
	list, err := redis.String(conn.Do("CLIENT", "LIST"))
	return float64(strings.Count(list, "\n")), err
}

func heap(m *runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(m)
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + ":" + strconv.Itoa(i)
	}
	return names
}

func takeAll(ctx context.Context, locker contest.Locker, names []string) error {
	var f failure
	var all sync.WaitGroup
	for first := range takers {
		all.Go(func() {
			for i := first; i < len(names) && f.get() == nil; i += takers {
				if _, err := locker.Key(names[i])(ctx); err != nil {
					f.set(err)
				}
			}
		})
	}
	all.Wait()
	return f.get()
}

func (i *idle) wait(ctx context.Context, key contest.Key) {
	_, err := key(ctx)
	if err == nil {
		i.failed.set(errFreed)
	} else if ctx.Err() == nil {
		i.failed.set(err)
	}
}

func (i *idle) end() Values {
	v := i.since.resting(i.waiters)
	v[Goroutines] = float64(runtime.NumGoroutine()-i.goroutines) / i.waiters
	var m runtime.MemStats
	heap(&m)
	v[Heap] = (float64(m.HeapAlloc) - float64(i.before.HeapAlloc)) / i.waiters
	v[Stack] = (float64(m.StackInuse) - float64(i.before.StackInuse)) / i.waiters
	n, err := connected(i.probe)
	if err != nil {
		i.failed.set(err)
	}
	v[Connections] = n - i.connections
	return v
}

func (i *idle) close() error { return i.finish(i.waiter.Close, i.holder.Close, i.probe.Close) }

const (
	lookEvery = 250 * time.Millisecond
	lookAt    = 500
)

type watchdog struct {
	common
	locker contest.Locker
	names  []string
	before runtime.MemStats

	least, lease, gone atomic.Int64 // least and lease are in milliseconds, gone is a count
}

func startWatchdog(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	locker, err := c.Open(ctx, contest.Settings{Addr: spec.Addr})
	if err != nil {
		return nil, err
	}
	w := &watchdog{locker: locker, names: numbered(spec.Key, spec.Goroutines)}
	heap(&w.before)
	if err := takeAll(ctx, locker, w.names); err != nil {
		return nil, errors.Join(err, locker.Close())
	}
	conn, err := redis.Dial("tcp", spec.Addr)
	if err != nil {
		return nil, errors.Join(err, locker.Close())
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.start(func() error {
		defer conn.Close() //nolint:errcheck // the connection was only read from
		return w.look(ctx, conn)
	})
	return w, nil
}

func (w *watchdog) look(ctx context.Context, conn redis.Conn) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for at := 0; ; at += lookAt {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.lookFrom(conn, at); err != nil {
			return err
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
	w.least.Store(int64(longLease / time.Millisecond))
	w.common.begin()
}

func (w *watchdog) end() Values {
	w.counting.Store(false)
	v := w.since.resting(float64(len(w.names)))
	v[Oldest] = float64(w.lease.Load()-w.least.Load()) / 1000
	v[Gone] = float64(w.gone.Load())
	var m runtime.MemStats
	heap(&m)
	v[Heap] = (float64(m.HeapAlloc) - float64(w.before.HeapAlloc)) / float64(len(w.names))
	return v
}

func (w *watchdog) close() error { return w.finish(w.locker.Close) }
