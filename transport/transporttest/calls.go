package transporttest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var callCases = []testCase{
	{"a plain command gets its reply", plainCommand, ""},
	{"a large value round-trips", largeValue, ""},
	{"a server error has its code, and the connection stays open", errorOfTheServer, ""},
	{"a call counts as sent before its reply arrives", claimedBeforeSent, ""},
	{"a call can be used again", usedAgain, ""},
	{"done may start other calls", startFromDone, ""},
	{"urgent calls overtake calls that wait for a connection", urgentOvertakes, "UrgentFirst Freeze"},
}

func plainCommand(f *fixture) {
	tr, key := f.open(), f.name()
	assert.Nil(f.t, f.reply(tr, command("GET", 1, key)))
	assert.Equal(f.t, "OK", f.reply(tr, command("SET", 1, key, "some text")))
	assert.Equal(f.t, "some text", f.reply(tr, command("GET", 1, key)))
	assert.Equal(f.t, "some text", f.value(key), "read over another connection")
	assert.Equal(f.t, int64(9), f.reply(tr, command("STRLEN", 1, key)))
	assert.Equal(f.t, int64(1), f.reply(tr, command("DEL", 1, key)))
	assert.Equal(f.t, []any{}, f.reply(tr, command("LRANGE", 1, key, 0, -1)))
	assert.Equal(f.t, []any{nil, nil}, f.reply(tr, command("HMGET", 1, key, "a", "b")))
	assert.Equal(f.t, "hello", f.reply(tr, command("ECHO", 0, "hello")), "without keys")
}

func largeValue(f *fixture) {
	tr, key := f.open(), f.name()
	value := strings.Repeat("0123456789abcde\n", 1<<16)
	f.reply(tr, command("SET", 1, key, value))
	got, isText := f.reply(tr, command("GET", 1, key)).(string)
	assert.True(f.t, isText && got == value, "the value came back changed, %d bytes of %d", len(got), len(value))
}

func errorOfTheServer(f *fixture) {
	tr, key := f.open(), f.name()
	f.reply(tr, command("SET", 1, key, "a string"))
	for _, call := range []*transport.Call{
		command("HGET", 1, key, "field"),
		eval(hget, 1, key, "field"),
	} {
		o := f.do(tr, call)
		var se *transport.ServerError
		require.ErrorAs(f.t, o.err, &se, call.Name())
		assert.Equal(f.t, serverError, classify(o.err), call.Name())
		assert.True(f.t, transport.IsCode(o.err, "WRONGTYPE"), "%s: %v", call.Name(), o.err)
		assert.Nil(f.t, o.reply, call.Name())
		conn := call.Conn()
		after := command("GET", 1, key)
		assert.Equal(f.t, "a string", f.reply(tr, after), "the next call")
		if conn != 0 && after.Conn() != 0 {
			assert.Equal(f.t, conn, after.Conn(), "%s: an error reply must not cause a new connection", call.Name())
		}
	}
	o := f.do(tr, command("NOSUCHCOMMAND", 0))
	assert.True(f.t, transport.IsCode(o.err, "ERR"), "%v", o.err)
}

// claimedBeforeSent detects transports that never call Claim.
func claimedBeforeSent(f *fixture) {
	tr, key := f.open(), f.name()
	for _, call := range []*transport.Call{command("GET", 1, key), eval(echo, 1, key, "x")} {
		o := f.do(tr, call)
		require.NoError(f.t, o.err)
		assert.False(f.t, call.Abandon(), "%s has been answered, and could still be withdrawn", call.Name())
	}
}

func usedAgain(f *fixture) {
	tr, key := f.open(), f.name()
	call := new(transport.Call)
	for i := range 100 {
		text := strconv.Itoa(i)
		switch i % 2 {
		case 0:
			call.Command = "SET"
			call.NumKeys, call.Args = 1, append(call.Args, key, text)
			assert.Equal(f.t, "OK", f.reply(tr, call))
		default:
			call.Script, call.Urgent = echo, true
			call.NumKeys, call.Args = 1, append(call.Args, key, text)
			assert.Equal(f.t, text, f.reply(tr, call))
		}
		*call = transport.Call{Args: call.Args[:0]}
	}
	assert.Equal(f.t, "98", f.value(key))
}

func startFromDone(f *fixture) {
	const length = 500
	tr, key := f.open(), f.name()
	last := make(chan error, 1)
	var next func(i int)
	next = func(i int) {
		p := f.watch(command("INCR", 1, key))
		tr.Start(p.call, func(reply any, err error) {
			p.done(reply, err)
			if err != nil || i == length {
				last <- err
				return
			}
			next(i + 1)
		})
	}
	next(1)
	require.NoError(f.t, receive(f, last, "a call started from done does not end"))
	assert.Equal(f.t, strconv.Itoa(length), f.value(key))
}

func urgentOvertakes(f *fixture) {
	const many = 2000
	thaw := f.freeze()
	tr, key := f.open(), f.name()
	var calls []*pending
	for range many {
		calls = append(calls, f.start(tr, command("INCR", 1, key)))
	}
	call := command("INCR", 1, key)
	call.Urgent = true
	urgent := f.start(tr, call)
	thaw()
	o := f.await(urgent)
	require.NoError(f.t, o.err)
	place, isNumber := o.reply.(int64)
	require.True(f.t, isNumber, "%v", o.reply)
	assert.Less(f.t, place, int64(many/2), "the urgent call's place among %d others", many)
	for _, p := range calls {
		require.NoError(f.t, f.await(p).err)
	}
}

var scriptCases = []testCase{
	{"a script's reply arrives, of every kind", everyKindOfReply, ""},
	{"arguments of every permitted kind arrive as their text", everyKindOfArgument, ""},
	{"a script runs after the server has forgotten it", forgottenScript, ""},
	{"scripts sent together run once each after the server has forgotten them", forgottenTogether, ""},
	{"NOSCRIPT in reply to a plain command is an ordinary error", noScriptOfOwn, ""},
}

var (
	echo  = transport.NewScript("echo", "return ARGV[1]")
	hget  = transport.NewScript("hget", "return redis.call('hget', KEYS[1], ARGV[1])")
	count = transport.NewScript("count", "return redis.call('incr', KEYS[1])")
	all   = transport.NewScript("all", "return ARGV")
)

func everyKindOfReply(f *fixture) {
	tr, key := f.open(), f.name()
	for lua, want := range map[string]any{
		"return false":                       nil,
		"return nil":                         nil,
		"return true":                        int64(1),
		"return 42":                          int64(42),
		"return -7":                          int64(-7),
		"return 0":                           int64(0),
		"return 'text'":                      "text",
		"return ''":                          "",
		"return redis.status_reply('FINE')":  "FINE",
		"return 'a\\r\\nb\\0c\\255'":         "a\r\nb\x00c\xff",
		"return {}":                          []any{},
		"return {1, 'two', false, ''}":       []any{int64(1), "two", nil, ""},
		"return {{1, {2, {}}}, {false}}":     []any{[]any{int64(1), []any{int64(2), []any{}}}, []any{nil}},
		"return {1, {err = 'MINE is it'}}":   []any{int64(1), "error: MINE is it"},
		"return {{{err = 'MINE is it'}}, 2}": []any{[]any{"error: MINE is it"}, int64(2)},
	} {
		script := transport.NewScript("kind", lua)
		assert.Equal(f.t, want, f.reply(tr, eval(script, 1, key)), "at first: %s", lua)
		assert.Equal(f.t, want, f.reply(tr, eval(script, 1, key)), "known to the server: %s", lua)
	}
	o := f.do(tr, eval(transport.NewScript("error", "return redis.error_reply('MINE is it')"), 1, key))
	assert.True(f.t, transport.IsCode(o.err, "MINE"), "%v", o.err)
}

func everyKindOfArgument(f *fixture) {
	tr, key := f.open(), f.name()
	call := eval(all, 1, key, "text", []byte("bytes"), 12, int64(-13), "", []byte{}, "a\r\nb\x00\xff",
		math.MaxInt64, int64(math.MinInt64))
	want := []any{"text", "bytes", "12", "-13", "", "", "a\r\nb\x00\xff",
		"9223372036854775807", "-9223372036854775808"}
	assert.Equal(f.t, want, f.reply(tr, call))

	call = eval(transport.NewScript("keys", "return KEYS"), 2, key+"a", []byte(key+"b"), "no key")
	assert.Equal(f.t, []any{key + "a", key + "b"}, f.reply(tr, call))
}

func forgottenScript(f *fixture) {
	tr, key := f.open(), f.name()
	for i := range 50 {
		f.h.Do(f.t, "SCRIPT", "FLUSH")
		assert.Equal(f.t, int64(i+1), f.reply(tr, eval(count, 1, key)))
	}
	assert.Equal(f.t, "50", f.value(key))
}

func forgottenTogether(f *fixture) {
	const rounds, together = 10, 100
	tr, key := f.open(), f.name()
	seen := map[any]bool{}
	for range rounds {
		f.h.Do(f.t, "SCRIPT", "FLUSH")
		var calls []*pending
		for range together {
			calls = append(calls, f.start(tr, eval(count, 1, key)))
		}
		for _, p := range calls {
			o := f.await(p)
			require.NoError(f.t, o.err)
			seen[o.reply] = true
		}
	}
	assert.Len(f.t, seen, rounds*together, "each call has its own reply")
	assert.Equal(f.t, strconv.Itoa(rounds*together), f.value(key))
}

func noScriptOfOwn(f *fixture) {
	tr, key := f.open(), f.name()
	unknown := transport.NewScript("unknown", "return '"+key+"'")
	o := f.do(tr, command("EVALSHA", 0, unknown.SHA(), 1, key))
	assert.True(f.t, transport.IsCode(o.err, "NOSCRIPT"), "%v", o.err)
}

func command(name string, keys int, args ...any) *transport.Call {
	return &transport.Call{Command: name, NumKeys: keys, Args: args}
}

func eval(s *transport.Script, keys int, args ...any) *transport.Call {
	return &transport.Call{Script: s, NumKeys: keys, Args: args}
}

func plain(reply any) any {
	switch r := reply.(type) {
	case []byte:
		return string(r)
	case []any:
		all := make([]any, len(r))
		for i := range r {
			all[i] = plain(r[i])
		}
		return all
	case *transport.ServerError:
		return "error: " + r.Text
	case error:
		return fmt.Sprintf("a %T, which is not of package transport: %v", r, r)
	}
	return reply
}

type class string

const (
	answered    class = "answered"
	notSent     class = "not sent"
	uncertain   class = "uncertain"
	serverError class = "server error"
	outside     class = "outside of the contract"
)

// classify returns outside for an error that belongs to several classes or to none.
func classify(err error) class {
	if err == nil {
		return answered
	}
	found, n := outside, 0
	var se *transport.ServerError
	if errors.Is(err, transport.ErrNotSent) {
		found, n = notSent, n+1
	}
	if errors.Is(err, transport.ErrUncertain) {
		found, n = uncertain, n+1
	}
	if errors.As(err, &se) && n == 0 {
		// ErrNotSent may wrap the error with which the server refused the connection.
		found, n = serverError, n+1
	}
	if n != 1 {
		return outside
	}
	return found
}

func (f *fixture) inContract(err error) {
	f.t.Helper()
	assert.NotEqual(f.t, outside, classify(err), "the error must wrap exactly one error of the contract: %v", err)
}

func (f *fixture) isNotSent(o outcome) {
	f.t.Helper()
	f.ended(o, notSent)
}

func (f *fixture) isUncertain(o outcome) {
	f.t.Helper()
	f.ended(o, uncertain)
}

func (f *fixture) ended(o outcome, want class) {
	f.t.Helper()
	assert.Equal(f.t, want, classify(o.err), "%v", o.err)
	assert.Nil(f.t, o.reply)
}
