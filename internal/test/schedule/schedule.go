// Package schedule repeats a test with different random orders of its goroutines. Each order is determined by a seed.
// Actors yield by sleeping with fake time, which does not hide data races from the race detector.
package schedule

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var only = flag.Uint64("seed", 0, "run only this schedule of each test; 0 means all")

const repeats = 100

// Run calls body in a bubble for each seed from 1 to seeds, until one fails. The flag -seed selects a single seed.
//
// With an even seed, two actors never continue at the same instant, so the order is always the same. With an odd seed,
// actors often run concurrently.
func Run(t *testing.T, seeds int, body func(t *testing.T, s *Schedule)) {
	t.Helper()
	if *only != 0 {
		for n := 0; n < repeats && !t.Failed(); n++ {
			run(t, *only, body)
		}
		return
	}
	for seed := uint64(1); seed <= uint64(seeds) && !t.Failed(); seed++ {
		run(t, seed, body)
	}
}

func run(t *testing.T, seed uint64, body func(t *testing.T, s *Schedule)) {
	t.Helper()
	// If all goroutines in a bubble wait for a mutex, it hangs without an error.
	defer time.AfterFunc(time.Minute, func() { fmt.Fprintf(os.Stderr, "%s hangs: -seed=%d\n", t.Name(), seed) }).Stop()
	defer func() {
		if why := recover(); why != nil {
			stacks := make([]byte, 1<<20)
			t.Errorf("%v\n%s", why, stacks[:runtime.Stack(stacks, true)])
		}
		if t.Failed() {
			t.Logf("the failed schedule: -seed=%d", seed)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		s := &Schedule{Seed: seed, apart: seed%2 == 0}
		defer s.Wait()
		body(t, s)
	})
}

// Schedule is one order of the actors of a test.
type Schedule struct {
	Seed uint64

	apart   bool // whether actors never continue at the same instant
	running sync.WaitGroup
}

// Go runs f in an actor, which must return before the bubble ends.
func (s *Schedule) Go(name string, f func(a *Actor)) {
	s.running.Go(func() {
		a := s.Actor(name)
		a.Yield()
		f(a)
	})
}

// Wait waits for all actors.
func (s *Schedule) Wait() { s.running.Wait() }

// Actor returns an actor, which only one goroutine may use at a time. Its choices depend only on the seed and the name.
func (s *Schedule) Actor(name string) *Actor {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	sum := h.Sum64()
	a := &Actor{rand: rand.New(rand.NewPCG(s.Seed, sum)), cycle: 1} //nolint:gosec // a test needs no secrets
	if s.apart {
		a.cycle = slots
		a.slot = int64(sum % slots)
	}
	return a
}

const (
	// slots is the number of instants in each cycle. An actor continues at one of them, which depends on its name.
	slots = 1021
	// steps is the number of cycles among which an actor that yields chooses.
	steps = 4
)

// Actor is a goroutine whose choices are random.
type Actor struct {
	rand        *rand.Rand
	slot, cycle int64 // in nanoseconds
}

// Yield may let other actors continue first.
func (a *Actor) Yield() { a.Sleep(time.Duration(int64(a.Pick(steps)) * a.cycle)) }

// Sleep sleeps for d, then until the actor's next instant.
func (a *Actor) Sleep(d time.Duration) {
	at := time.Now().UnixNano() + int64(d)
	time.Sleep(d + time.Duration((a.slot-at%a.cycle+a.cycle)%a.cycle))
}

// Pick returns a random number from 0 to n-1.
func (a *Actor) Pick(n int) int { return a.rand.IntN(n) }
