// Package work is the side of the benchmark that takes locks: a process that gets its work
// line by line, does it with one contestant, and reports the result.
//
// # The conversation
//
// Each line is one JSON value. The Java contestant, bench/java, uses the same.
//
//	runner                         worker
//	{Spec}              ────────▶  opens the contestant, starts, warms up
//	                    ◀────────  {"event":"ready"}
//	asks the server
//	"go"                ────────▶  counts from here, for Spec.Duration
//	                    ◀────────  {"event":"measured","values":{…}}
//	asks the server
//	"stop"              ────────▶  ends it all
//	                    ◀────────  {"event":"done","error":"…"}
//
// The work goes on between "measured" and "stop", so that the server's figures cover
// nothing but work. The end of the input ends the process.
//
// # The work
//
//	pairs     goroutines lock and unlock, each a key of its own
//	turns     goroutines lock and unlock the same key
//	wakeup    one holds, one waits: from the unlock to the other's return
//	idle      goroutines wait for a lock, or each for its own, which is never freed
//	watchdog  locks are held, and renewed
//
// A goroutine that finds itself in a lock with another is an error in every case.
package work

import (
	"errors"
	"maps"
	"math"
	"time"
)

// Kind is a kind of work.
type Kind string

// Kinds of work; the package comment says what they are.
const (
	Pairs    Kind = "pairs"
	Turns    Kind = "turns"
	Wakeup   Kind = "wakeup"
	Idle     Kind = "idle"
	Watchdog Kind = "watchdog"
)

// Spec is one measurement.
type Spec struct {
	// Kind is the work, Contestant the client that does it.
	Kind       Kind   `json:"kind"`
	Contestant string `json:"contestant"`
	// Addr is the server's address, host:port.
	Addr string `json:"addr"`
	// Key is the lock's name, or what the names begin with.
	Key string `json:"key"`
	// Goroutines is how many there are, or how many locks are held by the watchdog.
	Goroutines int `json:"goroutines"`
	// Reads is how many of 100 acquisitions of Turns read, at random; 0 for a lock
	// without readers.
	Reads int `json:"reads,omitempty"`
	// Permits is how many a semaphore has, 0 for a lock.
	Permits int `json:"permits,omitempty"`
	// Separate gives each waiter of Idle a lock of its own.
	Separate bool `json:"separate,omitempty"`
	// Warmup and Duration are milliseconds.
	Warmup   int64 `json:"warmup"`
	Duration int64 `json:"duration"`
	// Profile is the file for a profile of the processor's time; none if it is empty.
	Profile string `json:"profile,omitempty"`
}

func (s Spec) warmup() time.Duration   { return time.Duration(s.Warmup) * time.Millisecond }
func (s Spec) duration() time.Duration { return time.Duration(s.Duration) * time.Millisecond }

// Events that a worker tells.
const (
	EventReady    = "ready"
	EventMeasured = "measured"
	EventDone     = "done"
)

// Event is what a worker says.
type Event struct {
	// Event is its name.
	Event string `json:"event"`
	// Values are what was measured, by name; see the list of figures.
	Values Values `json:"values,omitempty"`
	// Error says what went wrong.
	Error string `json:"error,omitempty"`
}

// Values are figures by name.
type Values map[string]float64

// Known deletes values that are not numbers, because nothing was counted, and returns v.
func (v Values) Known() Values {
	maps.DeleteFunc(v, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	return v
}

// The names of figures that workers measure. Times are microseconds.
const (
	// Count is how many pairs, or acquisitions, or wake-ups there were.
	Count = "count"
	// Rate is Count per second.
	Rate = "rate"
	// P50, P99 and Longest are how long a pair took, a wait, or a wake-up.
	P50     = "p50"
	P99     = "p99"
	Longest = "longest"
	// Whole is the P50 of a wake-up from the unlock's call, and not from its return.
	Whole = "whole"
	// Allocs are heap allocations per count, CPU the process's processor time.
	Allocs = "allocs"
	CPU    = "client_cpu"
	// Luckiest and Unluckiest are shares, 1 being that of all if it were equal.
	Luckiest   = "luckiest"
	Unluckiest = "unluckiest"
	// Heap and Stack are bytes per waiter, Goroutines how many there are for each.
	Heap       = "heap"
	Stack      = "stack"
	Goroutines = "goroutines"
	// Connections is how many a client has to the server.
	Connections = "connections"
	// Oldest is the longest time, in seconds, that a lease had not been renewed, and
	// Gone how many of the leases looked at were gone.
	Oldest = "oldest"
	Gone   = "gone"
)

// Orders that a worker takes.
const (
	orderGo   = "go"
	orderStop = "stop"
)

// errOrder says that the runner did not follow the conversation.
var errOrder = errors.New("work: unexpected order")
