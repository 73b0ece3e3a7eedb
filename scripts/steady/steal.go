package main

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/stolen"
)

// reading is what the system has counted up to a moment.
type reading struct {
	at    time.Time
	count stolen.Count
}

// thief looks once a second at how much time the host has taken.
type thief struct {
	mu       sync.Mutex
	readings []reading
}

// watch starts to look, for as long as the program runs.
func watch() *thief {
	t := &thief{}
	t.look(time.Now())
	go func() {
		for now := range time.Tick(time.Second) {
			t.look(now)
		}
	}()
	return t
}

func (t *thief) look(now time.Time) {
	if c, ok := stolen.Read(); ok {
		t.add(reading{now, c})
	}
}

func (t *thief) add(r reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readings = append(t.readings, r)
}

// taken returns which share of all processors' time the host took in a period, on the
// whole and in the worst second: zero where that is not known.
func (t *thief) taken(from, to time.Time) (whole, worst float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := -1
	for i := 1; i < len(t.readings); i++ {
		a, b := t.readings[i-1], t.readings[i]
		if b.at.Before(from) || a.at.After(to) {
			continue
		}
		if first < 0 {
			first = i - 1
		}
		worst = max(worst, b.count.Since(a.count))
		whole = b.count.Since(t.readings[first].count)
	}
	return whole, worst
}

// disturbs reports whether so much explains that a test fails.
func disturbs(whole, worst float64) bool { return whole >= 0.05 || worst >= 0.25 }
