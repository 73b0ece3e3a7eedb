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

type request struct {
	script string
	keys   []string
	argv   []any
}

// Theirs contains the scripts of one Redisson release, by operation.
type Theirs struct {
	Release Release

	scripts map[*Operation]string
}

// NewTheirs returns an empty Theirs for a release.
func NewTheirs(r Release) *Theirs {
	return &Theirs{Release: r, scripts: map[*Operation]string{}}
}

// Learn records an operation's script. It returns an error if it has recorded a different one for the operation.
func (t *Theirs) Learn(op *Operation, call monitor.Call) error {
	if before, ok := t.scripts[op]; ok && before != call.Script {
		return fmt.Errorf("oracle: Redisson %s has two scripts for %s", t.Release, op)
	}
	t.scripts[op] = call.Script
	return nil
}

// Missing returns the operations of a kind for which no script has been learned.
func (t *Theirs) Missing(k *Kind) []*Operation {
	return slices.DeleteFunc(k.OperationsOf(t.Release), func(op *Operation) bool { return t.scripts[op] != "" })
}

// Renews reports whether call is a learned script that renews locks.
func (t *Theirs) Renews(call monitor.Call) bool {
	for op, script := range t.scripts {
		if op.act == renew && script == call.Script {
			return true
		}
	}
	return false
}

func (t *Theirs) isList(s Step) bool { return s.Op.OneByOne != nil && s.Op.OneByOne(t.Release) }

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

// Identify checks KEYS and ARGV of a call that a live Redisson made. It accepts any latch ID.
func Identify(r Release, call monitor.Call, s Step) error {
	s.RequestID = requestID(call)
	want := s.Op.Theirs(r, s)
	want.Argv = s.ended(want.Argv, call.Argv)
	if err := errors.Join(same("KEYS", want.Keys, call.Keys), same("ARGV", want.Argv, call.Argv)); err != nil {
		return fmt.Errorf("oracle: %s by Redisson %s: %w", s.Op, r, err)
	}
	return nil
}

const endsEarly = 10 * time.Second

func (s Step) ended(want, got []string) []string {
	now, end := slices.Index(want, clockNow), slices.Index(want, leaseEnd)
	if end < 0 || now < 0 || len(got) != len(want) {
		return want
	}
	s.Now, _ = strconv.ParseInt(got[now], 10, 64)
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

// The range of a latch's TTL in milliseconds.
const latchMin, latchMax = 13500, 20000

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

// Ours is this module's side. The zero value stands for an owner that only one process uses.
type Ours struct {
	// Shared selects an owner that can be handed over to another process.
	Shared  bool
	Instead map[*transport.Script]string
}

// Way is a named variant of our side.
type Way struct {
	Name string
	Ours Ours
}

// Ways lists the variants of our side. The variant with a shared owner behaves like Redisson.
var Ways = []Way{
	{"an owner of our own", Ours{}},
	{"a shared owner", Ours{Shared: true}},
}

func (o Ours) request(s Step) request {
	call := s.Op.Ours(s, o.Shared)
	text, ok := o.Instead[call.Script]
	if !ok {
		text = call.Script.Text()
	}
	return request{text, call.Keys, call.Argv}
}

// Lease returns the lease in our call. The rest of the call must match the step.
func (o Ours) Lease(call monitor.Call, s Step) (int64, error) {
	s.Lease = -1
	i := slices.Index(o.request(s).argv, any(s.Lease))
	if i < 0 || i >= len(call.Argv) {
		return 0, fmt.Errorf("oracle: %s: no lease in %q", s, call.Argv)
	}
	return strconv.ParseInt(call.Argv[i], 10, 64)
}

func unguarded(argv []string) []string {
	if n := len(argv) - 3; n >= 0 && argv[n] == "PUBLISH" && argv[n+2] == engine.GuardArg {
		return argv[:n]
	}
	return argv
}

// Identify checks that our call matches the step. It accepts any latch ID and, if the step does not specify a time, any
// time.
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
