package badinput_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/transport"
)

// value is an argument. The first value of each type is valid.
type value struct {
	what   string
	make   func(w *world) any
	panics string // pattern of the panic that it causes, or empty
}

func val(v any) value {
	return value{what: fmt.Sprintf("%.60q", fmt.Sprint(v)), make: func(*world) any { return v }}
}

func vals[T any](all ...T) []value {
	out := make([]value, len(all))
	for i, v := range all {
		out[i] = val(v)
	}
	return out
}

// mistake is a value that panics.
func mistake[T any](what, says string) value {
	var none T
	return value{what: what, make: func(*world) any { return none }, panics: says}
}

const nilDeref = "nil pointer dereference"

const mebibyte = 1 << 20

// long is the length of a long text. The race detector checks each byte of each copy.
var long = testlevel.Rounds(mebibyte/16, mebibyte)

// texts are names, owners, payloads and other strings.
var texts = []string{
	"plain", "", " ", "\x00", "a\x00b", "\xff\xfe", "{", "}", "{}", "a{b", "a}b", "{a}{b}", "}{",
	"a\r\nb", "*1\r\n$4\r\nQUIT\r\n", "ключ🔑", "%s%d%!", "-1", "NaN", "9223372036854775808", "1e400",
	"00000000-0000-0000-0000-000000000000:1", "\x1b[2J",
	strings.Repeat("n", long), strings.Repeat("{", long), strings.Repeat("\xff", long),
}

var durations = []time.Duration{
	5 * time.Second, 0, -1, 1, time.Millisecond - 1, time.Millisecond, -time.Hour, limits.Max, limits.Max + 1,
	math.MaxInt64, math.MinInt64,
}

// replies are possible replies, mostly to other commands.
var replies = []any{
	nil, int64(1), int64(0), int64(-1), int64(-2), int64(-3), int64(math.MaxInt64), int64(math.MinInt64),
	"OK", "", "-1", []byte("1"), []byte{}, []byte("\xff\x00"), strings.Repeat("x", long), 1.5, true, int32(1),
	[]any(nil), []any{}, []any{nil}, []any{int64(1)}, []any{int64(math.MaxInt64)}, []any{"1"}, []any{int64(-2), []any{}},
	[]any{int64(math.MaxInt64), "a"}, []any{int64(1), nil, nil, nil}, []any{int64(0), "", "x", int64(1)},
	[]any{int64(-2), []any{}, []any{}, []any{}, []any{}}, []any{int64(1), []any{"a"}, nil, nil, nil},
	[]any{int64(5), []any{"a", "x"}, []any{"b"}, []any{"b", "inf"}, []any{"c"}},
	[]any{int64(-2), []any{}, []any{}, []any{}, []any{}, int64(-1)}, []any{int64(1), []any{"a"}, nil, nil, nil, nil},
	[]any{int64(5), []any{"a", "x"}, []any{"b"}, []any{"b", "inf"}, []any{"c"}, int64(math.MaxInt64)},
	[]any{int64(5), []any{"a", "1e400"}, []any{}, int64(-1)}, []any{int64(-2), []any{"a", "inf", "b", "-inf"}, []any{}, int64(2)},
	[]any{"1", "2"}, []any{"9223372036854775807", "9223372036854775807"}, []any{"master", int64(0), []any{[]any{"", "0"}}},
	&transport.ServerError{}, &transport.ServerError{Text: strings.Repeat("E", long)}, errors.New("stray"),
	nested(100), many(testlevel.Rounds(10_000, 100_000)),
}

func nested(levels int) any {
	var reply any = int64(1)
	for range levels {
		reply = []any{reply}
	}
	return reply
}

func many(n int) any {
	reply := make([]any, n)
	for i := range reply {
		reply[i] = int64(i)
	}
	return reply
}

// mapper maps every name to itself.
type mapper string

func (m mapper) Map(string) string { return string(m) }

func (m mapper) Unmap(string) string { return string(m) }

var observers = []redlatch.Observer{
	observed.By(func(context.Context, any) context.Context { panic("the observer's own") }),
	observed.By(func(context.Context, any) context.Context { return nil }),
	{},
}

type dialFunc = func(ctx context.Context) (redis.Conn, error)

var errDial = errors.New("no way")

var dials = []value{
	{what: "dial", make: func(w *world) any { return w.srv.Server.Dial }},
	val(dialFunc(nil)),
	{what: "failing dial", make: func(*world) any {
		return func(context.Context) (redis.Conn, error) { return nil, errDial }
	}},
	{what: "empty dial", make: func(*world) any {
		return func(context.Context) (redis.Conn, error) { return nil, nil } //nolint:nilnil // the mistake
	}},
}

// values are the arguments of each type.
var values = map[reflect.Type][]value{
	typeOf[string]():        vals(texts...),
	typeOf[[]byte]():        vals([]byte("x"), nil, []byte{}, []byte("\xff\x00"), make([]byte, long)),
	typeOf[int]():           vals(1, 0, -1, math.MaxInt, math.MinInt),
	typeOf[int64]():         vals[int64](1, 0, -1, math.MaxInt64, math.MinInt64),
	typeOf[time.Duration](): vals(durations...),
	typeOf[time.Time](): vals(time.Now(), time.Time{}, time.Unix(0, 0), time.Unix(-1, 0),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)),
	typeOf[any]():       vals(replies...),
	typeOf[error]():     append(vals(errDial), mistake[error]("no error", "")),
	typeOf[uuid.UUID](): vals(uuid.UUID{7}, uuid.Nil, uuid.Max),
	typeOf[codec.Owner](): vals(codec.NewOwner(uuid.UUID{7}, 1), codec.Owner{}, codec.NewOwner(uuid.Max, math.MinInt64),
		codec.NewOwner(uuid.Nil, 1)),
	typeOf[context.Context](): {
		{what: "context", make: func(w *world) any { return w.bounded() }},
		{what: "ended context", make: func(w *world) any { return w.ended() }},
		mistake[context.Context]("nil context", "nil Context|nil parent"), // the second from the standard library
	},
	typeOf[redlatch.NameMapper](): append(vals[redlatch.NameMapper](mapper("mapped"), mapper(""), mapper("\xff"),
		mapper(strings.Repeat("m", long))), val(redlatch.NameMapper(nil))),
	typeOf[*slog.Logger](): vals(slog.New(slog.DiscardHandler), nil, new(slog.Logger)),
	typeOf[*tls.Config]():  vals(&tls.Config{}, nil),
	typeOf[func(context.Context) (string, string, error)](): vals[func(context.Context) (string, string, error)](nil),
	typeOf[redlatch.Observer]():                             vals(observers...),
	typeOf[[]redlatch.Observer]():                           vals(nil, observers),
	typeOf[func(string) string]():                           vals[func(string) string](nil, func(string) string { return "" }),
	typeOf[dialFunc]():                                      dials,
	typeOf[func(context.Context, string) (redis.Conn, error)](): vals[func(context.Context, string) (redis.Conn, error)](nil,
		func(context.Context, string) (redis.Conn, error) { return nil, errDial }),
	typeOf[transport.Transport](): {{what: "transport", make: func(*world) any { return newFake() }}, val(transport.Transport(nil))},
	typeOf[func(context.Context) error](): {
		val(func(context.Context) error { return nil }),
		mistake[func(context.Context) error]("nil function", nilDeref),
	},
	typeOf[func(context.Context, *rfencedlock.Hold) error](): {
		val(func(context.Context, *rfencedlock.Hold) error { return nil }),
		mistake[func(context.Context, *rfencedlock.Hold) error]("nil function", nilDeref),
	},
	typeOf[func() error](): {
		val(func() error { return nil }),
		val(func() error { return transport.ErrNotSent }),
		mistake[func() error]("nil function", nilDeref),
	},
	typeOf[transport.Sharding](): vals(transport.ShardingAuto, transport.ShardingOn, transport.ShardingOff, transport.Sharding(255)),
	typeOf[pubsub.Config](): {
		{what: "config", make: func(w *world) any { return pubsub.Config{Dial: w.srv.Server.Dial} }},
		{what: "negative config", make: func(w *world) any {
			return pubsub.Config{
				Dial: w.srv.Server.Dial, PingInterval: math.MinInt64, DeadAfter: -1, DialTimeout: -1,
				BackoffMin: math.MaxInt64, BackoffMax: math.MinInt64,
			}
		}},
		mistake[pubsub.Config]("no config", "Config.Dial is nil"),
	},
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// shortest is the maximum length of an error's text.
const shortest = 6144

// sentinels are the errors that can be tested for with errors.Is.
var sentinels = []error{
	redlatch.ErrNotAcquired, redlatch.ErrNotHeld, redlatch.ErrLost, redlatch.ErrMaxHold, redlatch.ErrHandedOver,
	redlatch.ErrReentered, redlatch.ErrClosed, redlatch.ErrUncertain, redlatch.ErrNotSent, redlatch.ErrWrongType,
	admin.ErrNotQueued, admin.ErrWaiterAlive, admin.ErrNotCounted, redlatch.ErrInvalid,
	redlatch.ErrNotReplicated, redlatch.ErrNotNotified, rfencedlock.ErrCounter, rfencedlock.ErrEpoch, rlatch.ErrNotOpen,
	transport.ErrBadReply, context.Canceled, context.DeadlineExceeded, errDial,
}

// sane checks err and reports whether it is nil.
func (w *world) sane(err error) bool {
	w.t.Helper()
	if err != nil {
		assert.NoError(w.t, complaint(err))
	}
	return err == nil
}

// complaint returns an error if err is long, or if it is not a sentinel and does not mention the library.
func complaint(err error) error {
	text := err.Error()
	var server *transport.ServerError
	switch {
	case len(text) > shortest:
		return fmt.Errorf("an error of %d bytes: %.200s", len(text), text)
	case errors.As(err, &server):
		return nil
	case strings.Contains(text, "its place changed on each check"):
		return nil // to be retried
	case strings.HasPrefix(text, "redlatch: ") || strings.HasPrefix(text, "embedded: "):
		return nil // an option of a client
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
	in   [][]value // values for each argument or, if it is variadic, for its elements
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
			for _, bad := range testlevel.Part(all[1:], 5, f.name) {
				args := append([]value(nil), good...)
				args[i] = bad
				f.once(w, args)
			}
		}
	})
}

// bound is the fake time that a call and its cleanup may take.
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
	assert.LessOrEqual(w.t, time.Since(began), bound, "%s is late", what)
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
		assert.Empty(w.t, panicked, "using the result of %s panics", what)
	}
}

// tells reports whether errors that the function returns are about its own call.
func (f *function) tells() bool { return !strings.HasSuffix(f.name, ".Unwrap") }

// argument returns the type of an argument or, if it is variadic, of its elements.
func (f *function) argument(i int) reflect.Type {
	kind := f.call.Type()
	if kind.IsVariadic() && i == kind.NumIn()-1 {
		return kind.In(i).Elem()
	}
	return kind.In(i)
}

func asArgument(v any, kind reflect.Type) reflect.Value {
	if v == nil {
		return reflect.Zero(kind)
	}
	return reflect.ValueOf(v)
}

// recovered runs do and returns the text of its panic, or "".
func recovered(do func() []reflect.Value) (out []reflect.Value, panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprint(p)
		}
	}()
	return do(), ""
}
