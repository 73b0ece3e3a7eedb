package work

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/bench/internal/contest"
)

const (
	// longLease outlives every measurement.
	longLease = time.Hour
	// takers is how many goroutines take the locks that are only held.
	takers = 64
)

// errFreed says that a waiter got a lock that another held.
var errFreed = errors.New("a waiter got a lock that was never freed")

// idle are waiters for locks that stay held, by another client with a lease that is
// not renewed, so that what is seen on the server is the waiters'.
type idle struct {
	holder, waiter contest.Locker
	probe          redis.Conn
	connections    float64
	waiters        float64
	before         runtime.MemStats
	goroutines     int
	cancel         context.CancelFunc
	done           sync.WaitGroup
	failed         failure
	since          usage
}

func startIdle(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	i := &idle{waiters: float64(spec.Goroutines)}
	names := []string{spec.Key}
	if spec.Separate {
		names = numbered(spec.Key, spec.Goroutines)
	}
	var err error
	if i.holder, err = c.Open(ctx, contest.Settings{Addr: spec.Addr, Lease: longLease}); err != nil {
		return nil, err
	}
	if err := takeAll(ctx, i.holder, names); err != nil {
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
	for n := range spec.Goroutines {
		key := i.waiter.Key(names[n%len(names)])
		i.done.Go(func() { i.wait(ctx, key) })
	}
	return i, nil
}

// ask finds out how many connections there are without the waiters'.
func (i *idle) ask(addr string) (err error) {
	if i.probe, err = redis.Dial("tcp", addr); err == nil {
		i.connections, err = connected(i.probe)
	}
	return err
}

// connected returns how many connections the server has.
func connected(conn redis.Conn) (float64, error) {
	list, err := redis.String(conn.Do("CLIENT", "LIST"))
	return float64(strings.Count(list, "\n")), err
}

// heap collects garbage and reads what is left.
func heap(m *runtime.MemStats) {
	runtime.GC()
	runtime.GC() // what finalizers let go in the first
	runtime.ReadMemStats(m)
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + ":" + strconv.Itoa(i)
	}
	return names
}

// takeAll locks all of names and keeps them.
func takeAll(ctx context.Context, locker contest.Locker, names []string) error {
	var f failure
	var all sync.WaitGroup
	for first := range takers {
		all.Go(func() {
			for i := first; i < len(names) && f.get() == nil; i += takers {
				if _, err := locker.Key(names[i]).Lock(ctx); err != nil {
					f.set(err)
				}
			}
		})
	}
	all.Wait()
	return f.get()
}

func (i *idle) wait(ctx context.Context, key contest.Key) {
	_, err := key.Lock(ctx)
	if err == nil {
		i.failed.set(errFreed)
	} else if ctx.Err() == nil {
		i.failed.set(err)
	}
}

func (i *idle) begin() { i.since = now() }

func (i *idle) end() Values {
	v := i.since.per(i.waiters)
	delete(v, Rate) // nothing happens: there is nothing to count
	v[CPU] /= time.Since(i.since.at).Seconds()
	v[Allocs] /= time.Since(i.since.at).Seconds()
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

func (i *idle) close() error {
	i.cancel()
	i.done.Wait()
	return errors.Join(i.failed.get(), i.waiter.Close(), i.holder.Close(), i.probe.Close())
}
