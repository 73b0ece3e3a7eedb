package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/monitor"
)

// Theirs has Redisson's scripts, by operation, as one release sent them.
type Theirs struct {
	// Release is the release.
	Release Release

	scripts map[*Operation]string
}

// NewTheirs returns an empty collection for a release.
func NewTheirs(r Release) *Theirs {
	return &Theirs{Release: r, scripts: map[*Operation]string{}}
}

// Learn takes the script of a call that is known to be op. A release has one
// text for each operation: two are an error.
func (t *Theirs) Learn(op *Operation, call monitor.Call) error {
	if before, ok := t.scripts[op]; ok && before != call.Script {
		return fmt.Errorf("oracle: Redisson %s has two scripts for %s", t.Release, op)
	}
	t.scripts[op] = call.Script
	return nil
}

// Missing returns the operations of a kind that no script was learnt for.
func (t *Theirs) Missing(k *Kind) []*Operation {
	var missing []*Operation
	for _, op := range k.OperationsOf(t.Release) {
		if t.scripts[op] == "" {
			missing = append(missing, op)
		}
	}
	return missing
}

// Identify checks that KEYS and ARGV of a call of a live Redisson are those that
// the release should send for the step. The id of a latch is the call's own.
func Identify(r Release, call monitor.Call, s Step) error {
	s.RequestID = requestID(call)
	want := s.Op.Theirs(r, s)[0]
	want.Argv = s.ended(want.Argv, call.Argv)
	if err := same("KEYS", want.Keys, call.Keys); err != nil {
		return fmt.Errorf("oracle: %s by Redisson %s: %w", s.Op, r, err)
	}
	if err := same("ARGV", want.Argv, call.Argv); err != nil {
		return fmt.Errorf("oracle: %s by Redisson %s: %w", s.Op, r, err)
	}
	return nil
}

// endsEarly is how long before it tells its clock a live Redisson may have looked at it for the
// end of a lease.
const endsEarly = 10 * time.Second

// ended puts the end of a lease, as a call has it, into the arguments that are wanted, if it
// fits the call's clock and the step's lease; else what it should be.
func (s Step) ended(want, got []string) []string {
	now, end := slices.Index(want, clockNow), slices.Index(want, leaseEnd)
	if end < 0 || now < 0 || len(got) != len(want) {
		return want
	}
	s.Now, _ = strconv.ParseInt(got[now], 10, 64) // 0 is no time of today
	latest := s.Now + s.Lease
	ends, err := strconv.ParseInt(got[end], 10, 64)
	if err != nil || ends > latest || ends < latest-endsEarly.Milliseconds() {
		ends = latest
	}
	want = slices.Clone(want)
	want[end] = decimal(ends)
	return want
}

const latchPrefix = "redisson_unlock_latch:"

var latchID = regexp.MustCompile(`:([0-9a-f]{32})$`)

// requestID is the id at the end of a release's latch key, if there is one.
func requestID(call monitor.Call) string {
	for _, key := range call.Keys {
		if !strings.HasPrefix(key, latchPrefix) {
			continue
		}
		if m := latchID.FindStringSubmatch(key); m != nil {
			return m[1]
		}
		return "not 32 hexadecimal digits"
	}
	return ""
}

func same(what string, want, got []string) error {
	ok := len(want) == len(got)
	for i := 0; ok && i < len(want); i++ {
		ok = matches(want[i], got[i])
	}
	if !ok {
		return fmt.Errorf("%s: want %q, got %q", what, want, got)
	}
	return nil
}

// The bounds of a latch's time to live, in milliseconds.
const latchMin, latchMax = 13500, 20000

// matches tells whether an argument is as wanted, or one that a live Redisson may
// have chosen.
func matches(want, got string) bool {
	n, err := strconv.ParseInt(got, 10, 64)
	switch want {
	case latchTTL:
		return err == nil && n >= latchMin && n <= latchMax
	case clockNow:
		return err == nil && time.Since(time.UnixMilli(n)).Abs() < time.Minute
	}
	return want == got
}
