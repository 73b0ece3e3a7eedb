package watchdog

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// doubts is a source of doubts, for Config.Doubt.
type doubts struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

func (d *doubts) channel() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next
}

func (d *doubts) raise() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.next)
	d.next = make(chan struct{})
}

func newDoubtingLoop(s *server) (*Loop, *doubts) {
	d := &doubts{next: make(chan struct{})}
	cfg := newLoop(s).cfg
	cfg.Doubt = d.channel
	return New(cfg), d
}

// seconds returns the times of the renewals.
func (s *server) seconds(start time.Time) (at []float64) {
	for _, t := range s.at {
		at = append(at, t.Sub(start).Seconds())
	}
	return at
}

func TestDoubtRenewsAllLeasesImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{answer: func(int, *Lease) (bool, error) { return false, nil }}
		w, d := newDoubtingLoop(s)
		defer w.Close()
		for range 3 * BatchSize {
			h := hold(w, 30*time.Second, false)
			defer func() {
				require.Equal(t, EndForgotten, h.end)
				require.Equal(t, time.Second, h.at.Sub(start), "a third of the lease is ten")
			}()
		}
		fixed := hold(w, 30*time.Second, true)
		time.Sleep(time.Second)
		d.raise()
		synctest.Wait()
		require.Equal(t, []int{BatchSize, BatchSize, BatchSize}, s.sizes)
		require.Zero(t, fixed.times, "it is not renewed, so it is not checked")
	})
}

func TestLeasesResumeOwnScheduleAfterDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{answer: alwaysHeld}
		w, d := newDoubtingLoop(s)
		defer w.Close()
		for range 3 {
			hold(w, 30*time.Second, false)
			time.Sleep(3 * time.Second)
		}
		d.raise() // after nine seconds
		sleep(20 * time.Second)
		require.Equal(t, []float64{9, 10, 13, 16, 20, 23, 26}, s.seconds(start))
		require.Equal(t, 3, s.sizes[0])
	})
}

func TestDoubtsAreLimitedToOneRenewalPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld}
		w, d := newDoubtingLoop(s)
		defer w.Close()
		hold(w, 30*time.Second, false)
		for range 500 {
			time.Sleep(10 * time.Millisecond)
			d.raise()
		}
		sleep(2 * time.Second)
		require.InDelta(t, 6, s.calls, 1)
		require.GreaterOrEqual(t, time.Since(s.at[s.calls-1]), time.Second, "after the last doubt they are renewed, and that is that")
	})
}

func TestRenewalsSentBeforeDoubtAreResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{latency: 500 * time.Millisecond, answer: func(n int, _ *Lease) (bool, error) { return n < 2, nil }}
		w, d := newDoubtingLoop(s)
		defer w.Close()
		h := hold(w, 30*time.Second, false)
		time.Sleep(10*time.Second + 200*time.Millisecond) // the renewal is in flight
		d.raise()
		sleep(5 * time.Second)
		require.Equal(t, []float64{10, 10.5}, s.seconds(start))
		require.Equal(t, 11*time.Second, h.at.Sub(start))
	})
}

func TestLeaseGrantedBeforeDoubtIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: alwaysHeld}
		w, d := newDoubtingLoop(s)
		defer w.Close()
		hold(w, 30*time.Second, false)
		late := &holder{}
		late.lease = Lease{Key: "late", Owner: "o", TTL: 30 * time.Second, TTLArg: int64(30000), Holder: late}
		late.lease.Hold(time.Now(), always(time.Second))
		time.Sleep(time.Second)
		d.raise()
		synctest.Wait()
		require.Equal(t, 1, s.calls)
		w.Add(&late.lease)
		hold(w, 30*time.Second, false)
		synctest.Wait()
		require.Equal(t, []int{1, 1}, s.sizes, "later grants are not in doubt")
	})
}

func TestDoubtShortensRetryPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{answer: func(int, *Lease) (bool, error) {
			if time.Since(start) < 6*time.Second {
				return false, errors.New("down")
			}
			return false, nil
		}}
		w, d := newDoubtingLoop(s)
		defer w.Close()
		h := hold(w, 30*time.Second, false)
		time.Sleep(time.Second)
		d.raise()
		sleep(5*time.Second + 10*time.Millisecond)
		require.Zero(t, h.times, "it pauses")
		d.raise()
		synctest.Wait()
		require.Equal(t, 6*time.Second+10*time.Millisecond, h.at.Sub(start))
		require.Less(t, s.calls, 15)
	})
}

func TestPendingDoubtCounts(t *testing.T) {
	t.Parallel()
	d := &doubts{next: make(chan struct{})}
	w := New(Config{Doubt: d.channel})
	l := &Lease{TTL: time.Minute}
	require.True(t, l.Hold(time.Now(), always(time.Second)))
	require.False(t, w.Doubted(l))
	d.raise() // no lease was added, so no goroutine runs
	require.True(t, w.Doubted(l))
}
