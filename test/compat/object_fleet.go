package compat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	fleetPermits  = 3
	permitThreads = 3                    // of each client, two of each language
	permitSpan    = 8 * time.Second      // of the measure, at least
	permitRest    = 3 * time.Millisecond // of a hold, and between two, at most
	permitLeast   = 50                   // rounds of each language that a measurement needs
)

// permitFleet is both languages at one semaphore.
type permitFleet struct {
	out        atomic.Int64 // permits that are held now, by either language
	most       atomic.Int64
	ours, java atomic.Int64 // rounds
}

// hold holds n permits for a moment.
func (f *permitFleet) hold(n int64, done *atomic.Int64) {
	out := f.out.Add(n)
	for most := f.most.Load(); out > most; most = f.most.Load() {
		f.most.CompareAndSwap(most, out)
	}
	done.Add(1)
	rest()
	f.out.Add(-n)
}

// least is the rounds of the language that has fewer.
func (f *permitFleet) least() int64 { return min(f.ours.Load(), f.java.Load()) }

func rest() { time.Sleep(time.Duration(rand.Int64N(int64(permitRest)))) }

// testPermitFleet demands that no more permits are out than were set, in both languages together, and
// that all are back in the end. A permit is out from the reply until its release is sent.
func (c *compat) testPermitFleet(t *testing.T) {
	f := &permitFleet{}
	var verdict string
	c.table.note(t, c.release.String(), "permits", func() string { return verdict })
	s, name := redistest.Start(t), redistest.Key(t)
	set, err := rsemaphore.NewExpirable(open(t, s), name).TrySetPermits(t.Context(), fleetPermits)
	require.NoError(t, err)
	require.True(t, set)
	ctx, cancel := context.WithTimeout(t.Context(), 2*atMost)
	defer cancel()
	go func() {
		defer cancel()
		// A machine that is busy with much else needs longer for a measurement.
		for began := time.Now(); ctx.Err() == nil && (time.Since(began) < permitSpan || f.least() < permitLeast); {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	var all sync.WaitGroup
	for range 2 {
		j, ours := connect(t, c.peer, s, nil), rsemaphore.NewExpirable(open(t, s), name)
		for i := range permitThreads {
			all.Go(func() { f.javaRounds(ctx, t, j, fmt.Sprint("t", i), name) })
			all.Go(func() { f.goRounds(ctx, t, ours) })
		}
	}
	all.Wait()
	most, ours, java := f.most.Load(), f.ours.Load(), f.java.Load()
	require.LessOrEqual(t, most, int64(fleetPermits))
	require.EqualValues(t, fleetPermits, most, "they never met")
	require.GreaterOrEqual(t, f.least(), int64(permitLeast), "Go %d, Java %d", ours, java)
	require.Equal(t, fmt.Sprint(fleetPermits), fmt.Sprintf("%s", s.Do(t, "GET", name)))
	require.Zero(t, s.Do(t, "EXISTS", codec.PermitsKey(name)))
	awaitListenersOn(t, s, codec.SemaphoreChannel(name), 0)
	verdict = fmt.Sprintf("%d rounds, Go %d %%, never more than %d out", ours+java, 100*ours/(ours+java), most)
}

func (f *permitFleet) goRounds(ctx context.Context, t *testing.T, ours *rsemaphore.Expirable) {
	t.Helper()
	for ctx.Err() == nil {
		n := 1 + rand.IntN(2)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), atMost)
		hold, err := ours.Acquire(limited, n)
		cancel()
		if !assert.NoError(t, err) {
			return
		}
		f.hold(int64(n), &f.ours)
		if !assert.NoError(t, hold.Release()) {
			return
		}
		rest()
	}
}

func (f *permitFleet) javaRounds(ctx context.Context, t *testing.T, j *java, thread, name string) {
	t.Helper()
	at := peer.Command{"thread": thread, "name": name}
	for ctx.Err() == nil {
		var id string
		reply, err := j.begin(object("permits", "acquire", 60000, msUnit).With(at)).Wait(atMost)
		if !assert.NoError(t, errors.Join(err)) || !assert.NoError(t, reply.Into(&id)) {
			return
		}
		f.hold(1, &f.java)
		_, err = j.begin(object("permits", "release", id).With(at)).Wait(atMost)
		if !assert.NoError(t, err) {
			return
		}
		rest()
	}
}
