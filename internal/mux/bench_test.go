package mux_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// share runs b.N calls on n goroutines, each with a function of its own.
func share(b *testing.B, n int, newCall func() func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range n {
		call := newCall()
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkCalls compares the Mux with a redigo pool of 64 connections on one
// small script.
func BenchmarkCalls(b *testing.B) {
	server := redistest.Start(b)
	for _, n := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("mux/%d", n), func(b *testing.B) {
			m := open(b, configFor(server.Addr()))
			share(b, n, func() func() error {
				c := newCaller()
				return func() error { return c.run(m) }
			})
		})
		b.Run(fmt.Sprintf("pool64/%d", n), func(b *testing.B) {
			pool := &redis.Pool{MaxIdle: 64, MaxActive: 64, Wait: true, DialContext: dialTo(server.Addr())}
			b.Cleanup(func() { _ = pool.Close() })
			share(b, n, func() func() error {
				script := redis.NewScript(1, "return nil")
				return func() error {
					conn := pool.Get()
					defer func() { _ = conn.Close() }()
					_, err := script.Do(conn, "key", int64(30000), "owner")
					return err
				}
			})
		})
	}
}
