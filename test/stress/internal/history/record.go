//go:build linux

// Package history records how several processes use locks, and checks that the locks worked. Each process appends its
// records to its own file, each with a single write(2), so that they survive if the process is killed. Times are
// readings of CLOCK_MONOTONIC, which all processes on a machine share. A hold is recorded as Call, Return, Grant, any
// number of Valids, then Give and Return, or Over if it was lost.
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

// Time is a reading of CLOCK_MONOTONIC, or the difference between two.
type Time = time.Duration

// Now returns the current time.
func Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return Time(ts.Nano())
}

// Kind is the kind of a record.
type Kind string

// The kinds of records. Unless stated otherwise, T was read after the event.
const (
	// Life is the start of a client. Owner is the client's UUID.
	Life Kind = "life"
	// LifeOver is written before a client is closed or its process exits.
	LifeOver Kind = "life-over"
	// Call is the start of the call with this ID. T was read before the call, and Wait is its time limit. Hold is the
	// hold that it ends, or the hold whose proof it uses.
	Call   Kind = "call"
	Return Kind = "return"
	// Grant is a hold that the call with this ID acquired. Outer is the hold whose proof was used, if any.
	Grant Kind = "grant"
	// Valid is a sample of a valid hold. T was read before Err returned nil, and Until is T plus the remaining time.
	Valid Kind = "valid"
	// Over is the first sample with an error. Until is the time of the last valid sample.
	Over Kind = "over"
	// Give is written before the hold is ended by the operation Op.
	Give Kind = "give"
	// Kept cancels a Give because the hold was not ended.
	Kept Kind = "kept"
	// Mark is a stream entry that the holder added on the server without faults. Err returned nil afterwards.
	Mark Kind = "mark"
	// Audit is the server's state, read after a sample that was taken at Until. Depth is 0 if it is unknown. Unless
	// Exact is set, Count may be higher than Depth, because an inner unlock may be resolved in the background.
	Audit Kind = "audit"
	// Absent is the owner's count on the server, read after a successful unlock.
	Absent Kind = "absent"
	// Stock is a semaphore's state, read between T and Until. If Exact is set, no permit can have been lost.
	Stock Kind = "stock"
	// Fault is an injected fault that lasted from T to Until. Op is its name. Key is the key that the server lost, or
	// "*" if it lost all keys.
	Fault Kind = "fault"
	// Stop reports that process P was stopped between T, which was read before the stop, and Until.
	Stop Kind = "stop"
	// Kill reports that process P was killed. T was read before the kill.
	Kill Kind = "kill"
)

// Stalled is the Op of a Stop that the process detected itself.
const Stalled = "stalled"

// Record is one line of a history.
type Record struct {
	T     Time   `json:"t"`
	P     string `json:"p"`
	Kind  Kind   `json:"k"`
	ID    string `json:"id,omitempty"`
	Op    string `json:"op,omitempty"`
	Key   string `json:"key,omitempty"`
	Hold  string `json:"hold,omitempty"`
	Outer string `json:"outer,omitempty"`
	Owner string `json:"owner,omitempty"`
	Entry string `json:"entry,omitempty"`
	Err   string `json:"err,omitempty"`
	// Until is the end of the interval that begins at T.
	Until   Time  `json:"until,omitempty"`
	Wait    Time  `json:"wait,omitempty"`
	Lease   Time  `json:"lease,omitempty"`
	Margin  Time  `json:"margin,omitempty"`
	Renewed bool  `json:"renewed,omitempty"`
	Token   int64 `json:"token,omitempty"`
	Read    bool  `json:"read,omitempty"`
	TTL     Time  `json:"ttl,omitempty"`
	Count   int64 `json:"count,omitempty"`
	Depth   int64 `json:"depth,omitempty"`
	Exact   bool  `json:"exact,omitempty"`
	// Permits is 0 for a lock. Most is the semaphore's size.
	Permits   int64 `json:"permits,omitempty"`
	Most      int64 `json:"most,omitempty"`
	Available int64 `json:"available,omitempty"`
}

// Writer appends one process's records. It is safe for concurrent use.
type Writer struct {
	file    *os.File
	process string
}

// Create opens the file to which process p appends its records, and creates it if necessary.
func Create(path, p string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the tester's own choice
	if err != nil {
		return nil, err
	}
	return &Writer{file: f, process: p}, nil
}

// Write appends r, and sets its time and process if they are zero. When Write returns, the record is in the kernel, so
// it survives the process.
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

// Follower reads histories that are still being written.
type Follower struct {
	offsets map[string]int64
}

// Next returns the records that were added since the last call for the same path. It leaves an incomplete last line for
// the next call.
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
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

// Owners tracks the owners that may still hold locks on the server although no caller uses them.
type Owners struct {
	alive map[string]string
	dead  map[string]bool
	left  map[string]string // owner -> why the server may still have it
	holds map[string]string
	calls map[string]Record
}

// Add adds records, which must be later than all records that were added before.
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

// Explains returns why the server may still have an owner that no caller uses, or "" if it should not have it.
func (o *Owners) Explains(owner string) string {
	id, _, _ := strings.Cut(owner, ":")
	if _, alive := o.alive[id]; !alive {
		return "its client has ended"
	}
	return o.left[owner]
}
