package badinput_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/transport"
)

// shortest is how long the text of an error may be, with all that it repeats.
const shortest = 6144

// sentinels are the errors that can be tested for with errors.Is.
var sentinels = []error{
	redlatch.ErrNotAcquired, redlatch.ErrNotHeld, redlatch.ErrLost, redlatch.ErrMaxHold, redlatch.ErrHandedOver,
	redlatch.ErrReentered, redlatch.ErrClosed, redlatch.ErrUncertain, redlatch.ErrNotSent, redlatch.ErrWrongType,
	admin.ErrNotQueued, admin.ErrWaiterAlive, admin.ErrNotCounted, redlatch.ErrInvalid,
	redlatch.ErrNotReplicated, redlatch.ErrNotNotified, rfencedlock.ErrCounter, rfencedlock.ErrEpoch, rlatch.ErrNotOpen,
	transport.ErrBadReply, context.Canceled, context.DeadlineExceeded, errDial,
}

// sane reports whether there is no error, and checks the one there is.
func (w *world) sane(err error) bool {
	w.t.Helper()
	if err != nil {
		assert.NoError(w.t, complaint(err))
	}
	return err == nil
}

// complaint returns what is wrong with an error: that it is long, or that it is no sentinel
// and does not name the library.
func complaint(err error) error {
	text := err.Error()
	var server *transport.ServerError
	switch {
	case len(text) > shortest:
		return fmt.Errorf("an error of %d bytes: %.200s", len(text), text)
	case errors.As(err, &server):
		return nil
	case strings.Contains(text, "its place changed each time it was looked at"):
		return nil // nothing to decide by: try again
	case strings.HasPrefix(text, "redlatch: ") || strings.HasPrefix(text, "embedded: "):
		return nil // an option of a client: there is nothing to decide by
	}
	for _, known := range sentinels {
		if errors.Is(err, known) {
			return nil
		}
	}
	return fmt.Errorf("an error of no known kind: %s", text)
}

// function is an exported function and its arguments.
type function struct {
	name string
	call reflect.Value
	in   [][]value // for each argument, the last of a variadic one for its elements
}

func newFunction(t *testing.T, name string, f any, also map[reflect.Type][]value) *function {
	t.Helper()
	fn := &function{name: name, call: reflect.ValueOf(f)}
	kind := fn.call.Type()
	for i := range kind.NumIn() {
		in := kind.In(i)
		if kind.IsVariadic() && i == kind.NumIn()-1 {
			in = in.Elem()
		}
		all, known := also[in]
		if !known {
			all, known = values[in]
		}
		if !known && in.Kind() == reflect.Func && in.NumOut() == 0 {
			all, known = []value{{what: "no option", make: func(*world) any { return reflect.Zero(in).Interface() }}}, true
		}
		require.True(t, known, "%s takes a %v, of which there are no bad values", name, in)
		fn.in = append(fn.in, all)
	}
	return fn
}

// try calls the function with one bad argument at a time.
func (f *function) try(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		good := make([]value, len(f.in))
		for i, all := range f.in {
			good[i] = all[0]
		}
		f.once(w, good)
		for i, all := range f.in {
			for _, bad := range testlevel.Part(all[1:], 3, f.name) {
				args := append([]value(nil), good...)
				args[i] = bad
				f.once(w, args)
			}
		}
	})
}

// bound is how much fake time a call may take: the patience of its context, and what
// it takes to undo what was begun.
const bound = 2 * patience

// once calls the function.
func (f *function) once(w *world, args []value) {
	what, panics := f.name+"(", ""
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		what += a.what + ", "
		panics += a.panics
		in[i] = asArgument(a.make(w), f.argument(i))
	}
	what = strings.TrimSuffix(what, ", ") + ")"
	began := time.Now()
	out, panicked := recovered(func() []reflect.Value { return f.call.Call(in) })
	assert.LessOrEqual(w.t, time.Since(began), bound, "%s took its time", what)
	if panicked != "" {
		assert.NotEmpty(w.t, panics, "%s panics: %s", what, panicked)
		assert.Regexp(w.t, panics, panicked, what)
		return
	}
	for _, o := range out {
		if err, isError := o.Interface().(error); isError && f.tells() {
			assert.NoError(w.t, complaint(err), what)
			continue
		}
		_, panicked := recovered(func() []reflect.Value { w.use(o.Interface()); return nil })
		assert.Empty(w.t, panicked, "what %s returned panics when it is used", what)
	}
}

// tells reports whether the function's error says how it went: that of a hold or a
// LockError is what it was made for.
func (f *function) tells() bool { return !strings.HasSuffix(f.name, ".Unwrap") }

// argument is the type of an argument, of its elements for a variadic one.
func (f *function) argument(i int) reflect.Type {
	kind := f.call.Type()
	if kind.IsVariadic() && i == kind.NumIn()-1 {
		return kind.In(i).Elem()
	}
	return kind.In(i)
}

// asArgument makes a value of the type that the function takes, nil included.
func asArgument(v any, kind reflect.Type) reflect.Value {
	if v == nil {
		return reflect.Zero(kind)
	}
	return reflect.ValueOf(v)
}

// recovered runs do and returns what it panicked with, "" if it did not.
func recovered(do func() []reflect.Value) (out []reflect.Value, panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprint(p)
		}
	}()
	return do(), ""
}
