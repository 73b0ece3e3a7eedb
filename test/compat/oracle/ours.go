package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/transport"
)

// Ours is this module's side. The zero Ours is an owner of our own, whose scripts
// name the count that they aim at.
type Ours struct {
	// Shared makes it an owner that others use, too: one that travels.
	Shared bool
	// Instead, where set, has texts to run in place of the module's own: mutants
	// that must be noticed.
	Instead map[*transport.Script]string
}

// Way is one of the ways in which we do what Redisson does.
type Way struct {
	// Name is what tables call it.
	Name string
	// Ours is our side of it.
	Ours Ours
}

// Ways lists them.
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

// Identify checks that a call of ours is the step. The id of a latch is the call's
// own, and so is the time of a step that has none.
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

// unguarded leaves out the three arguments by which a client's first acquisition of a kind asks
// whether its user may publish: PUBLISH, the channel and "guard". Redisson sends none.
func unguarded(argv []string) []string {
	if n := len(argv) - 3; n >= 0 && argv[n] == "PUBLISH" && argv[n+2] == engine.GuardArg {
		return argv[:n]
	}
	return argv
}
