package redistest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const stall = 100 * time.Millisecond

// InRealTime runs a test whose result depends on the speed of the machine. The argument reason completes the sentence
// "This test is in real time because". If the test fails and the process was stalled for longer than stall, the test is
// repeated up to four times. It must not have subtests.
func InRealTime(t *testing.T, reason string, test func(tb testing.TB)) {
	t.Helper()
	stalls := WatchStalls(t)
	if err := repeat(t, stalls.Longest, test); err != nil {
		t.Fatalf("%v\nThis test is in real time because %s.", err, reason)
	}
}

func repeat(t *testing.T, longest func(from, to time.Time) time.Duration, test func(testing.TB)) error {
	t.Helper()
	for range 5 {
		a, began := &attempt{TB: t}, time.Now()
		a.run(test)
		if t.Skipped() {
			t.SkipNow()
		}
		if !a.Failed() {
			return nil
		}
		still := longest(began, time.Now())
		if still <= stall {
			return fmt.Errorf("%s\n(the machine did not stall for longer than %v)", a.says(), still)
		}
		t.Logf("tried again, as the machine stalled for %v: %s", still, a.says())
	}
	return errors.New("the machine stalled each time")
}

type attempt struct {
	testing.TB

	mu       sync.Mutex // guards the fields below
	failed   bool
	texts    []string
	cleanups []func()
}

// run calls test in its own goroutine, because FailNow may end that goroutine, and then calls the cleanups.
func (a *attempt) run(test func(testing.TB)) {
	inGoroutine(func() { test(a) })
	for {
		a.mu.Lock()
		last := len(a.cleanups) - 1
		if last < 0 {
			a.mu.Unlock()
			return
		}
		f := a.cleanups[last]
		a.cleanups = a.cleanups[:last]
		a.mu.Unlock()
		inGoroutine(f)
	}
}

func inGoroutine(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

func (a *attempt) says() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.texts, "\n")
}

func (a *attempt) fail(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
	a.texts = append(a.texts, text)
}

// Cleanup calls f at the end of this attempt.
func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

// Failed reports whether this attempt has failed.
func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// Fail marks this attempt as failed, as do the methods below.
func (a *attempt) Fail() { a.fail("") }

func (a *attempt) Error(args ...any)                 { a.fail(fmt.Sprint(args...)) }
func (a *attempt) Errorf(format string, args ...any) { a.fail(fmt.Sprintf(format, args...)) }

// FailNow marks this attempt as failed and ends its goroutine.
func (a *attempt) FailNow() {
	a.fail("")
	runtime.Goexit()
}

func (a *attempt) Fatal(args ...any) {
	a.Error(args...)
	a.FailNow()
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	a.FailNow()
}

// Stalls records the times at which this process was not scheduled in time.
type Stalls struct {
	mu   sync.Mutex // guards seen
	seen []stood
}

type stood struct {
	end  time.Time
	took time.Duration
}

// WatchStalls records stalls until the test ends.
func WatchStalls(tb testing.TB) *Stalls {
	tb.Helper()
	s, stop := watchStalls()
	tb.Cleanup(stop)
	return s
}

// Longest returns the longest stall that ended between from and to.
func (s *Stalls) Longest(from, to time.Time) (most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen {
		if !one.end.Before(from) && !one.end.After(to) {
			most = max(most, one.took)
		}
	}
	return most
}

func watchStalls() (s *Stalls, stop func()) {
	const nap = 10 * time.Millisecond
	s, end := &Stalls{}, make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		tick := time.NewTicker(nap)
		defer tick.Stop()
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-end:
				return
			case <-tick.C:
				if took := time.Since(last) - nap; took > stall {
					s.mu.Lock()
					s.seen = append(s.seen, stood{time.Now(), took})
					s.mu.Unlock()
				}
			}
		}
	})
	return s, func() { close(end); looks.Wait() }
}
