// Package work is the worker process of the benchmark.
//
// # The conversation
//
// Each line is one JSON value. The worker in bench/java uses the same protocol.
//
//	runner                         worker
//	{Spec}              ────────▶  opens the contestant, starts, warms up
//	                    ◀────────  {"event":"ready"}
//	reads INFO
//	"go"                ────────▶  counts from here, for Spec.Duration
//	                    ◀────────  {"event":"measured","values":{…}}
//	reads INFO
//	"stop"              ────────▶  ends the work
//	                    ◀────────  {"event":"done","error":"…"}
//
// # The work
//
//	pairs     goroutines lock and unlock, each its own key
//	turns     goroutines lock and unlock the same key
//	wakeup    one holds, one waits: from the unlock to the other's return
//	idle      goroutines wait for a lock that is never released
//	watchdog  locks are held and renewed
//
// A violation of mutual exclusion is an error in every case.
package work

import (
	"errors"
	"maps"
	"math"
	"time"
)

// Kind is a kind of work.
type Kind string

// Kinds of work; see the package comment.
const (
	Pairs    Kind = "pairs"
	Turns    Kind = "turns"
	Wakeup   Kind = "wakeup"
	Idle     Kind = "idle"
	Watchdog Kind = "watchdog"
)

// Spec describes one measurement.
type Spec struct {
	Kind       Kind   `json:"kind"`
	Contestant string `json:"contestant"`
	Addr       string `json:"addr"`
	// Key is the lock's name, or the prefix of all names.
	Key string `json:"key"`
	// Goroutines is the number of goroutines, or of locks for Watchdog.
	Goroutines int `json:"goroutines"`
	// Reads is the percentage of Turns' acquisitions that are reads.
	Reads   int `json:"reads,omitempty"`
	Permits int `json:"permits,omitempty"`
	// Warmup and Duration are in milliseconds.
	Warmup   int64  `json:"warmup"`
	Duration int64  `json:"duration"`
	Profile  string `json:"profile,omitempty"`
}

func (s Spec) warmup() time.Duration   { return time.Duration(s.Warmup) * time.Millisecond }
func (s Spec) duration() time.Duration { return time.Duration(s.Duration) * time.Millisecond }

// The events that a worker sends.
const (
	EventReady    = "ready"
	EventMeasured = "measured"
	EventDone     = "done"
)

// Event is one line of a worker's output.
type Event struct {
	Event  string `json:"event"`
	Values Values `json:"values,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Values contains figures by their names.
type Values map[string]float64

// Known removes NaNs and infinities, which result from empty counts, and returns v.
func (v Values) Known() Values {
	maps.DeleteFunc(v, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	return v
}

// Names of the figures that workers report. Times are in microseconds.
const (
	// Count is the number of pairs, acquisitions or wake-ups.
	Count = "count"
	// Rate is Count per second.
	Rate = "rate"
	// P50, P99 and Longest describe how long pairs, waits or wake-ups took.
	P50     = "p50"
	P99     = "p99"
	Longest = "longest"
	// Whole is like P50 for wake-ups, but measured from the call to Unlock.
	Whole = "whole"
	// Allocs and CPU are the heap allocations and the process's CPU time per operation.
	Allocs = "allocs"
	CPU    = "client_cpu"
	// Luckiest and Unluckiest are the largest and smallest shares of a goroutine, relative to an
	// equal share.
	Luckiest   = "luckiest"
	Unluckiest = "unluckiest"
	// Heap and Stack are in bytes per waiter or lock. Goroutines is the number of goroutines per
	// waiter.
	Heap       = "heap"
	Stack      = "stack"
	Goroutines = "goroutines"
	// Connections is the number of a client's connections.
	Connections = "connections"
	// Oldest is the longest time without a renewal, in seconds. Gone counts checks in which a lock
	// was missing.
	Oldest = "oldest"
	Gone   = "gone"
)

const (
	orderGo   = "go"
	orderStop = "stop"
)

var errOrder = errors.New("work: unexpected order")
