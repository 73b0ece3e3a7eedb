//go:build linux

// Package history records what several processes did with locks, and judges it.
//
// # What is written
//
// Each process appends records to a file of its own, one write(2) for each, so that what it
// did before it was killed is there. Times are of CLOCK_MONOTONIC, which all processes of a
// machine share. The life of a hold:
//
//	Call ──▶ Return ──▶ Grant ──▶ Valid, again and again ──▶ Give ──▶ Return
//	                      │                              ├─▶ Over
//	                      └── Mark, Audit                └─▶ nothing more: killed
//
// # When a hold is valid
//
// From the moment after its grant until the moment before it was given up, or until its own
// deadline. A sample is a time, then Err() == nil, then Remaining(): the hold was valid at
// that time, and unless it ends early it is valid for what Remaining returned from that
// time on. Both are lower bounds. A process that stands still, or was killed later, cannot
// have seen its hold end, so its hold counts as valid until the deadline of its last
// sample, or until it was killed. When the end was seen before the deadline, the hold
// counts as valid until the last sample alone. So an interval is never longer than the
// hold's own view of itself, however busy the machine, and two that overlap are two that
// believed it at once.
//
// # What is judged
//
//   - Overlaps: of two owners' intervals on one key. None may be while the server
//     remembers; where it was made to forget, none may last longer than a renewal
//     period after that. Holds of one owner are one holder: nested and handed over.
//   - Marks: while it is inside, a holder appends to a stream on a server that no
//     fault touches, and then looks whether it is still valid. The marks that were
//     followed by such a look need no clock: between the first and the last of one
//     owner there may be none of another. Marks without it prove nothing, since the
//     command may have arrived late.
//   - Tokens: a hold whose call began after another hold was granted has a higher token,
//     unless the server was made to forget in between.
//   - Audits: what the server has, asked past all faults, after a sample. The hold
//     must end at least its loss margin before the key can expire, and the owner's
//     count must be how often it is inside. After an unlock that succeeded the owner
//     must be gone.
//   - Early ends: a hold that is lost before its deadline, while the server
//     remembers.
//   - Re-entries: the proof of a hold that the server was made to forget must be
//     refused.
//   - Bounds: every call returns in its time, the time its process stood still not
//     counted: it was frozen, or a goroutine of its own that does nothing else was woken
//     half a second late.
//   - Idle locks: from the reply to an unlock until a waiter has the lock, the time
//     around faults not counted.
//
// Of semaphores, while the server remembers:
//
//   - Permits: at no time are more out than were set. A hold has its permits as late and
//     as shortly as its calls and samples allow, so that those that fit make an order in
//     which a semaphore could have granted them, and those that do not are a proof. No
//     model checker says more, since an attempt that was refused may have met permits of
//     calls in doubt.
//   - Marks: the same of stays, without a clock.
//   - Stocks: what the server has available and taken is together never more than was set,
//     and where no permit can have been lost, never less; and what is available is at most
//     what the holds leave that were valid from before the question until after the reply.
//   - Idle permits: from the reply to a release, while a caller waits for no more of the
//     permits that were given back than later grants have left.
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

// Time is a reading of the machine's CLOCK_MONOTONIC, or a distance of two.
type Time = time.Duration

// Now reads the clock that all processes of the machine share. It stands still
// while the machine is suspended, for all of them.
func Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // a Linux without this clock there is not
	}
	return Time(ts.Nano())
}

// Kind is what a record tells.
type Kind string

// The kinds of records. Unless stated otherwise, T is read after the event.
const (
	// Life begins a client: Owner is its UUID.
	Life Kind = "life"
	// LifeOver says that a client was closed, or is about to end with its process.
	LifeOver Kind = "life-over"
	// Call begins a call: T is before it. ID, Op, Key, Wait is its bound, Hold the
	// hold that it is about or whose proof it has.
	Call Kind = "call"
	// Return ends the call ID with Err, empty for success.
	Return Kind = "return"
	// Grant is a hold: ID is the call, Outer the hold whose proof was used, Lease and
	// Margin are its own, Renewed is true when it is renewed, Token is its token.
	Grant Kind = "grant"
	// Valid is a sample: T is before Err was nil, Until is T and what remained.
	Valid Kind = "valid"
	// Over is the first sample that was not nil: Until is the last valid sample, Err
	// why.
	Over Kind = "over"
	// Give says that a hold is about to be given up by Op: T is before it.
	Give Kind = "give"
	// Kept takes a Give back: the call failed and the hold goes on.
	Kept Kind = "kept"
	// Mark is an entry on the untouched server, after which Err was nil.
	Mark Kind = "mark"
	// Audit is what the server had: TTL and Count, asked after a sample of Until. Depth
	// is how often the owner was inside, 0 if that is not sure; the count may be higher
	// unless it is Exact, because an inner unlock may be settled in the background.
	Audit Kind = "audit"
	// Absent is how often the owner was in the key after an unlock that succeeded.
	Absent Kind = "absent"
	// Stock is what a semaphore had at one moment from T, read before it was asked, until
	// Until: Available and Count, how many were taken, of Most. Exact says that these are
	// all there may be: no permit can have been lost.
	Stock Kind = "stock"
	// Fault is what was broken: Op, from T until Until. Key is set when the server was
	// made to forget this key, "*" for all.
	Fault Kind = "fault"
	// Stop says that process P stood still from T, read before, until Until.
	Stop Kind = "stop"
	// Kill says that process P was killed: T is before it.
	Kill Kind = "kill"
)

// Stalled is the Op of a Stop that the process noticed itself: a goroutine of its own was woken
// late. It was frozen, or the machine gave it no time.
const Stalled = "stalled"

// Record is one line of a history. Which fields are set says its kind.
type Record struct {
	// T is when, P which process, Kind what.
	T    Time   `json:"t"`
	P    string `json:"p"`
	Kind Kind   `json:"k"`
	// ID names a call, and the hold that came of it; Op is what was called.
	ID string `json:"id,omitempty"`
	Op string `json:"op,omitempty"`
	// Key is a lock, Hold a hold, Outer the one it was entered by, Owner its owner.
	Key   string `json:"key,omitempty"`
	Hold  string `json:"hold,omitempty"`
	Outer string `json:"outer,omitempty"`
	Owner string `json:"owner,omitempty"`
	// Entry is the ID of a mark in its stream.
	Entry string `json:"entry,omitempty"`
	// Err is the class of an error, empty for none.
	Err string `json:"err,omitempty"`
	// Until is the other end of what T begins.
	Until Time `json:"until,omitempty"`
	// Wait is a call's bound.
	Wait Time `json:"wait,omitempty"`
	// Lease and Margin are a hold's; Renewed says that its lease is.
	Lease   Time `json:"lease,omitempty"`
	Margin  Time `json:"margin,omitempty"`
	Renewed bool `json:"renewed,omitempty"`
	// Token is a hold's, 0 for locks without.
	Token int64 `json:"token,omitempty"`
	// Read says that a hold is a reader's, beside which there may be other readers.
	Read bool `json:"read,omitempty"`
	// TTL and Count are what an audit found, Depth what its client expects, and Exact
	// whether that is all there may be.
	TTL   Time  `json:"ttl,omitempty"`
	Count int64 `json:"count,omitempty"`
	Depth int64 `json:"depth,omitempty"`
	Exact bool  `json:"exact,omitempty"`
	// Permits is how many a hold has or a call asks for, 0 for a lock; Most is how many were
	// set; Available is how many of a semaphore can be taken.
	Permits   int64 `json:"permits,omitempty"`
	Most      int64 `json:"most,omitempty"`
	Available int64 `json:"available,omitempty"`
}

// Writer appends the records of one process to a file. It is safe for concurrent
// use.
type Writer struct {
	file    *os.File
	process string
}

// Create opens the file for process p, and makes it if need be.
func Create(path, p string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the tester's own choice
	if err != nil {
		return nil, err
	}
	return &Writer{file: f, process: p}, nil
}

// Write appends r, with the time that it is now unless r has one. It is in the
// system's hands when Write returns. A history that cannot be written is worth
// nothing, so that panics.
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

// Next returns what has been appended to the file since it was last asked about. A
// last line without an end is left for the next time, or for ever, if its process
// was killed as it wrote.
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

// Owners knows, of every owner, whether the server may still have it when no caller is
// inside. It grows with the history.
type Owners struct {
	alive map[string]string // UUIDs of clients that live, and their processes
	dead  map[string]bool   // processes that were killed; what they still write is of their last moment
	left  map[string]string // owners whose lock was left to its lease, and why
	holds map[string]string // owners by hold
	calls map[string]Record // calls that have not returned
}

// Add adds records, later ones than before, and puts them in order.
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

// Excuse says why the server may have an owner from now on.
func (o *Owners) Excuse(owner, why string) { o.left[owner] = why }

// Explains returns why the server may still have an owner, as a holder or in a queue, when
// no caller is at work, or "" when it may not.
func (o *Owners) Explains(owner string) string {
	id, _, _ := strings.Cut(owner, ":")
	if _, alive := o.alive[id]; !alive {
		return "its client has ended"
	}
	return o.left[owner]
}
