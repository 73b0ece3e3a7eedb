//go:build linux

// Package history records how several processes used locks, and checks it.
//
// # Records
//
// Each process appends records to its own file with one write(2) each, so that they survive its kill. Times
// are CLOCK_MONOTONIC, which all processes of a machine share. The life of a hold:
//
//	Call ──▶ Return ──▶ Grant ──▶ Valid (repeated) ──▶ Give ──▶ Return
//	                      │                        ├─▶ Over
//	                      └── Mark, Audit          └─▶ killed
//
// # When a hold is valid
//
// It is valid from its grant until its release or its deadline. A sample is a time, then Err() ==
// nil, then Remaining(): the hold was valid at that time and, unless it ends early, for the remaining time.
// Both are lower bounds. A process that was stopped or later killed cannot have seen its hold end, so its hold
// is valid until the last sample's deadline or the kill. If the end was seen before the deadline, the hold is
// valid until the last sample. So an interval never exceeds the hold's own view, however busy the machine is,
// and two overlapping holds were both believed valid.
//
// # Checks
//
//   - Overlaps of two owners' intervals on one key: none while the server remembers, and after it was
//     made to forget, none longer than a renewal period. Holds of one owner are one holder: nested or
//     handed over.
//   - Marks: a holder appends to a stream on a server without faults, and then checks that it is still
//     valid. Marks followed by a valid check need no clock: none of another owner may be between the
//     first and last of one. Others prove nothing, because the command may have arrived late.
//   - Tokens: a call that began after another hold was granted gets a higher token, unless the server
//     was made to forget in between.
//   - Audits: the server's state, read past all faults after a sample. The hold must end at least its
//     loss margin before the key can expire, and the owner's count must be its depth. After a successful
//     unlock the owner must be gone.
//   - Early ends: no hold is lost before its deadline while the server remembers.
//   - Re-entries: the proof of a forgotten hold must be rejected.
//   - Bounds: every call returns in its time, except while its process was stopped, or a goroutine that
//     only sleeps woke half a second late.
//   - Idle locks: from the reply to an unlock until the next waiter's grant, except around faults.
//
// For semaphores, while the server remembers:
//
//   - Permits: never more in use than were set. A hold has its permits as late and as briefly as its
//     calls and samples allow, so an order of grants exists if they fit, and a violation is proven if
//     they don't. A model checker says no more, because a rejected attempt may have met permits of calls
//     in doubt.
//   - Marks: the same without a clock.
//   - Stocks: available and taken permits are never more than were set, and never fewer if no permit can
//     have been lost. At most those are available that holds valid throughout the query leave.
//   - Idle permits: from the reply to a release, while a caller waits for no more than the released
//     permits that later grants left.
package history

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Time is a reading of CLOCK_MONOTONIC, or a difference of two.
type Time = time.Duration

// Now reads the clock that all processes share. It stops while the machine is suspended.
func Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return Time(ts.Nano())
}

// Kind is the kind of a record.
type Kind string

// Unless stated otherwise, T is read after the event.
const (
	// Life begins a client: Owner is its UUID.
	Life Kind = "life"
	// LifeOver precedes the close of a client or the end of its process.
	LifeOver Kind = "life-over"
	// Call begins the call ID, which is Op on Key; T is before it, Wait is its bound, and Hold is its hold or
	// the source of its proof.
	Call   Kind = "call"
	Return Kind = "return"
	// Grant is a hold of the call ID: Outer is the hold whose proof was used, Lease, Margin and Token are its
	// own, and Renewed reports renewal.
	Grant Kind = "grant"
	// Valid is a sample: T is before Err was nil, Until is T plus the remaining time.
	Valid Kind = "valid"
	// Over is the first sample with an error, Err: Until is the last valid sample.
	Over Kind = "over"
	// Give precedes the end of a hold by Op: T is before it.
	Give Kind = "give"
	// Kept cancels a Give: the call failed and the hold remains.
	Kept Kind = "kept"
	// Mark is an entry on the server without faults, after which Err was nil.
	Mark Kind = "mark"
	// Audit is the server's state: TTL and Count, read after a sample of Until. Depth is the owner's depth, or
	// 0 if unknown; Count may be higher unless Exact, because an inner unlock may be resolved in the
	// background.
	Audit Kind = "audit"
	// Absent is the owner's count in the key after a successful unlock.
	Absent Kind = "absent"
	// Stock is a semaphore's state at one moment between T and Until: Available, Count taken, and Most. Exact
	// reports that these are all: no permit can have been lost.
	Stock Kind = "stock"
	// Fault is an injected fault: Op, from T until Until. Key is the forgotten key, or "*" for all.
	Fault Kind = "fault"
	// Stop reports that process P was stopped from T, read before, until Until.
	Stop Kind = "stop"
	// Kill reports that process P was killed: T is before it.
	Kill Kind = "kill"
)

// Stalled is the Op of a Stop that the process noticed itself, by a goroutine that woke late.
const Stalled = "stalled"

// Record is one line of a history. Its kind determines which fields are set.
type Record struct {
	// T is the time, P the process.
	T    Time   `json:"t"`
	P    string `json:"p"`
	Kind Kind   `json:"k"`
	// ID names a call and its hold; Op is the call's method.
	ID string `json:"id,omitempty"`
	Op string `json:"op,omitempty"`
	// Outer is the hold that this one was entered by.
	Key   string `json:"key,omitempty"`
	Hold  string `json:"hold,omitempty"`
	Outer string `json:"outer,omitempty"`
	Owner string `json:"owner,omitempty"`
	Entry string `json:"entry,omitempty"`
	// Err is the class of an error, or "".
	Err string `json:"err,omitempty"`
	// Until is the end of the span that T begins.
	Until   Time  `json:"until,omitempty"`
	Wait    Time  `json:"wait,omitempty"`
	Lease   Time  `json:"lease,omitempty"`
	Margin  Time  `json:"margin,omitempty"`
	Renewed bool  `json:"renewed,omitempty"`
	Token   int64 `json:"token,omitempty"`
	// Read marks a reader's hold.
	Read bool `json:"read,omitempty"`
	// TTL and Count are an audit's results, Depth is the expected count, and Exact reports whether Count must
	// equal it.
	TTL   Time  `json:"ttl,omitempty"`
	Count int64 `json:"count,omitempty"`
	Depth int64 `json:"depth,omitempty"`
	Exact bool  `json:"exact,omitempty"`
	// Permits is the number that a hold has or a call requests, 0 for a lock; Most is the semaphore's size.
	Permits   int64 `json:"permits,omitempty"`
	Most      int64 `json:"most,omitempty"`
	Available int64 `json:"available,omitempty"`
}

// Writer appends the records of one process to a file. It is safe for concurrent use.
type Writer struct {
	file    *os.File
	process string
}

// Create opens or creates the file for process p.
func Create(path, p string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the tester's own choice
	if err != nil {
		return nil, err
	}
	return &Writer{file: f, process: p}, nil
}

// Write appends r, with the current time unless r has one. The kernel has it when Write returns. Write panics
// on errors, because an incomplete history is worthless.
func (w *Writer) Write(r Record) {
	if r.T == 0 {
		r.T = Now()
	}
	if r.P == "" {
		r.P = w.process
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Errorf("history: %w", err))
	}
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Follower reads a growing history in parts.
type Follower struct {
	offsets map[string]int64
}

// Next returns what was appended to the file since the last call. An incomplete last line is left for the next
// call, or forever if its process was killed.
func (f *Follower) Next(path string) ([]Record, error) {
	if f.offsets == nil {
		f.offsets = map[string]int64{}
	}
	text, err := readFrom(path, f.offsets[path])
	if err != nil {
		return nil, err
	}
	var all []Record
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
		f.offsets[path] += int64(len(line))
	}
	return all, nil
}

func readFrom(path string, offset int64) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the tester's own choice
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

// Owners tracks which owners the server may still have although no caller is inside.
type Owners struct {
	alive map[string]string // UUIDs of clients that live, and their processes
	dead  map[string]bool   // killed processes, which may still write a last record
	left  map[string]string // owners whose lock was left to its lease, and why
	holds map[string]string // owners by hold
	calls map[string]Record // calls that have not returned
}

// Add adds records that are later than earlier ones, in any order.
func (o *Owners) Add(records []Record) {
	if o.alive == nil {
		o.alive, o.dead, o.left = map[string]string{}, map[string]bool{}, map[string]string{}
		o.holds, o.calls = map[string]string{}, map[string]Record{}
	}
	inOrder(records)
	for _, rec := range records {
		o.add(rec)
	}
}

func (o *Owners) add(rec Record) {
	switch rec.Kind {
	case Life:
		if !o.dead[rec.P] {
			o.alive[rec.Owner] = rec.P
		}
	case LifeOver:
		delete(o.alive, rec.Owner)
	case Kill:
		o.dead[rec.P] = true
		for id, p := range o.alive {
			if p == rec.P {
				delete(o.alive, id)
			}
		}
	case Grant:
		o.holds[rec.Hold] = rec.Owner
	case Give:
		if !frees(rec.Op) {
			o.left[o.holds[rec.Hold]] = rec.Op
		}
	case Kept:
		delete(o.left, o.holds[rec.Hold])
	case Over:
		o.left[o.holds[rec.Hold]] = rec.Err
	case Call:
		o.calls[rec.ID] = rec
	case Return:
		if c := o.calls[rec.ID]; frees(c.Op) && rec.Err != "" {
			o.left[o.holds[c.Hold]] = "unlock: " + rec.Err
		}
		delete(o.calls, rec.ID)
	}
}

// Excuse records why the server may keep an owner.
func (o *Owners) Excuse(owner, why string) { o.left[owner] = why }

// Explains returns why the server may still have an owner, as a holder or waiter, while no caller is active,
// or "".
func (o *Owners) Explains(owner string) string {
	id, _, _ := strings.Cut(owner, ":")
	if _, alive := o.alive[id]; !alive {
		return "its client has ended"
	}
	return o.left[owner]
}
