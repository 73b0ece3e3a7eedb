package oracle

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/compat/monitor"
)

// Operation is what a script does.
type Operation string

// The operations of the plain lock.
const (
	Acquire Operation = "acquire"
	Free    Operation = "release"
	Force   Operation = "force"
	Renew   Operation = "renew"
)

// Operations lists them, in the order of the tables that tests print.
var Operations = []Operation{Acquire, Free, Force, Renew}

// Theirs has Redisson's scripts, by operation, as one release sent them.
type Theirs struct {
	// Release is the release.
	Release Release

	scripts map[Operation]string
}

// NewTheirs returns an empty collection for a release.
func NewTheirs(r Release) *Theirs {
	return &Theirs{Release: r, scripts: map[Operation]string{}}
}

// Learn takes the script of a call that is known to be op. A release has one
// text for each operation: two are an error.
func (t *Theirs) Learn(op Operation, call monitor.Call) error {
	if before, ok := t.scripts[op]; ok && before != call.Script {
		return fmt.Errorf("oracle: Redisson %s has two scripts for %s", t.Release, op)
	}
	t.scripts[op] = call.Script
	return nil
}

// Missing returns the operations that no script was learnt for.
func (t *Theirs) Missing() []Operation {
	var missing []Operation
	for _, op := range Operations {
		if t.scripts[op] == "" {
			missing = append(missing, op)
		}
	}
	return missing
}

// Expect says what a call of a live Redisson must look like.
type Expect struct {
	// Op is what was asked for.
	Op Operation
	// Name is the lock's name, after the name mapper.
	Name string
	// Owner is who acts; nobody for Force.
	Owner string
	// Lease is in milliseconds; none for Force.
	Lease int64
}

// Identify checks that KEYS and ARGV of a call are those that the release
// should send for what was asked of it.
func Identify(r Release, call monitor.Call, want Expect) error {
	keys, argv := want.shape(r, requestID(call))
	if err := same("KEYS", keys, call.Keys); err != nil {
		return fmt.Errorf("oracle: %s by Redisson %s: %w", want.Op, r, err)
	}
	if err := same("ARGV", argv, call.Argv); err != nil {
		return fmt.Errorf("oracle: %s by Redisson %s: %w", want.Op, r, err)
	}
	return nil
}

// latchTTL stands in ARGV for a latch's time to live, which is random.
const latchTTL = "<latch>"

// The bounds of a latch's time to live, in milliseconds.
const latchMin, latchMax = 13500, 20000

// shape is what Redisson's script is called with.
func (e Expect) shape(r Release, id string) (keys, argv []string) {
	lease := strconv.FormatInt(e.Lease, 10)
	switch e.Op {
	case Acquire, Renew: // a batch of one lock looks like a single one
		return []string{e.Name}, []string{lease, e.Owner}
	case Free:
		keys, argv = []string{e.Name, codec.LockChannel(e.Name)}, []string{codec.MessageUnlock, lease, e.Owner}
	case Force:
		keys, argv = []string{e.Name, codec.LockChannel(e.Name)}, []string{codec.MessageUnlock}
	}
	if r.NamesPublish() {
		argv = append(argv, "PUBLISH")
	}
	if r.HasLatch() && e.Op == Free {
		keys, argv = append(keys, codec.LatchKey(e.Name, id)), append(argv, latchTTL)
	}
	return keys, argv
}

var latchID = regexp.MustCompile(`:([0-9a-f]{32})$`)

// requestID is the id at the end of a release's latch key, if there is one.
func requestID(call monitor.Call) string {
	if len(call.Keys) < 3 {
		return ""
	}
	if m := latchID.FindStringSubmatch(call.Keys[2]); m != nil {
		return m[1]
	}
	return "not 32 hexadecimal digits"
}

func same(what string, want, got []string) error {
	ok := len(want) == len(got)
	for i := 0; ok && i < len(want); i++ {
		ok = want[i] == got[i] || want[i] == latchTTL && isLatchTTL(got[i])
	}
	if !ok {
		return fmt.Errorf("%s: want %q, got %q", what, want, got)
	}
	return nil
}

func isLatchTTL(text string) bool {
	ms, err := strconv.ParseInt(text, 10, 64)
	return err == nil && ms >= latchMin && ms <= latchMax
}
