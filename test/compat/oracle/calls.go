package oracle

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/transport"
)

// request is one script to run.
type request struct {
	script string
	keys   []string
	argv   []any
}

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

// Learn takes the script of a call that is known to be op. A release has one text for each
// operation: two are an error.
func (t *Theirs) Learn(op *Operation, call monitor.Call) error {
	if before, ok := t.scripts[op]; ok && before != call.Script {
		return fmt.Errorf("oracle: Redisson %s has two scripts for %s", t.Release, op)
	}
	t.scripts[op] = call.Script
	return nil
}

// Missing returns the operations of a kind whose scripts were not learned.
func (t *Theirs) Missing(k *Kind) []*Operation {
	return slices.DeleteFunc(k.OperationsOf(t.Release), func(op *Operation) bool { return t.scripts[op] != "" })
}

// Renews reports whether a call is a renewal of locks whose script was learned.
func (t *Theirs) Renews(call monitor.Call) bool {
	for op, script := range t.scripts {
		if op.act == renew && script == call.Script {
			return true
		}
	}
	return false
}

// isList reports whether the replies of a step make a list.
func (t *Theirs) isList(s Step) bool { return s.Op.OneByOne != nil && s.Op.OneByOne(t.Release) }

// calls returns what the step's scripts are called with.
func (t *Theirs) calls(s Step) (all []Args) {
	size := len(s.Names)
	if t.isList(s) {
		size = 1
	}
	for names := range slices.Chunk(s.Names, size) {
		s.Names = names
		args := s.Op.Theirs(t.Release, s)
		args.Argv = s.given(args.Argv)
		all = append(all, args)
	}
	return all
}

// requests is the step as Redisson does it.
func (t *Theirs) requests(s Step) (all []request) {
	for _, args := range t.calls(s) {
		r := request{script: t.scripts[s.Op], keys: args.Keys}
		for _, arg := range args.Argv {
			r.argv = append(r.argv, arg)
		}
		all = append(all, r)
	}
	return all
}

// Identify checks that KEYS and ARGV of a call of a live Redisson are those that the release
// should send for the step. The id of a latch is the call's own.
func Identify(r Release, call monitor.Call, s Step) error {
	s.RequestID = requestID(call)
	want := s.Op.Theirs(r, s)
	want.Argv = s.ended(want.Argv, call.Argv)
	if err := errors.Join(same("KEYS", want.Keys, call.Keys), same("ARGV", want.Argv, call.Argv)); err != nil {
		return fmt.Errorf("oracle: %s by Redisson %s: %w", s.Op, r, err)
	}
	return nil
}

// endsEarly is how long before its clock a live Redisson may have computed the end of a lease.
const endsEarly = 10 * time.Second

// ended puts the end of a lease that a call has into the wanted arguments, if it fits the call's
// clock and the step's lease; else what it should be.
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
	if !slices.EqualFunc(want, got, matches) {
		return fmt.Errorf("%s: want %q, got %q", what, want, got)
	}
	return nil
}

// The bounds of a latch's time to live, in milliseconds.
const latchMin, latchMax = 13500, 20000

// matches reports whether an argument is as wanted, or one that a live Redisson may have chosen.
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

// Ours is this module's side. The zero Ours is an owner of our own, whose scripts name the
// count that they aim at.
type Ours struct {
	// Shared makes it a shared owner, which travels between processes.
	Shared bool
	// Instead, where set, has texts to run in place of the module's own.
	Instead map[*transport.Script]string
}

// Way is one of the ways in which we do what Redisson does.
type Way struct {
	// Name is its name in tables.
	Name string
	// Ours is our side of it.
	Ours Ours
}

// Ways lists them: owners that one process alone uses have scripts of their own for release
// and re-entry; owners that travel do what Redisson does.
var Ways = []Way{
	{"an owner of our own", Ours{}},
	{"an owner that travels", Ours{Shared: true}},
}

// request is the step as we do it.
func (o Ours) request(s Step) request {
	call := s.Op.Ours(s, o.Shared)
	text, ok := o.Instead[call.Script]
	if !ok {
		text = call.Script.Text()
	}
	return request{text, call.Keys, call.Argv}
}

// Lease returns the lease in a call of ours that is the step but for the lease.
func (o Ours) Lease(call monitor.Call, s Step) (int64, error) {
	s.Lease = -1 // no other argument is
	i := slices.Index(o.request(s).argv, any(s.Lease))
	if i < 0 || i >= len(call.Argv) {
		return 0, fmt.Errorf("oracle: %s: no lease in %q", s, call.Argv)
	}
	return strconv.ParseInt(call.Argv[i], 10, 64)
}

// unguarded returns the arguments of a call of ours without those of its guard: the first call of
// a client about a kind also asks whether the user may publish.
func unguarded(argv []string) []string {
	if n := len(argv) - 3; n >= 0 && argv[n] == "PUBLISH" && argv[n+2] == engine.GuardArg {
		return argv[:n]
	}
	return argv
}

// Identify checks that a call of ours is the step. The id of a latch is the call's own, and so
// is the time of a step that has none.
func (o Ours) Identify(call monitor.Call, s Step) error {
	s.RequestID = requestID(call)
	want := o.request(s)
	var argv []string
	for _, arg := range want.argv {
		argv = append(argv, fmt.Sprint(arg))
	}
	if call.Script != want.script {
		return fmt.Errorf("oracle: %s sent another script", s)
	}
	if err := errors.Join(same("KEYS", want.keys, call.Keys), same("ARGV", argv, unguarded(call.Argv))); err != nil {
		return fmt.Errorf("oracle: %s: %w", s, err)
	}
	return nil
}
