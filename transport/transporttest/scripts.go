package transporttest

import (
	"math"
	"strconv"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var scriptCases = []testCase{
	{"a script's reply arrives, of every kind", everyKindOfReply},
	{"arguments of every permitted kind arrive as their text", everyKindOfArgument},
	{"a script runs after the server has forgotten it", forgottenScript},
	{"scripts sent together run once each after the server has forgotten them", forgottenTogether},
	{"NOSCRIPT in answer to a plain command is an error like others", noScriptOfOwn},
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
	assert.Len(f.t, seen, rounds*together, "each call has a reply of its own")
	assert.Equal(f.t, strconv.Itoa(rounds*together), f.value(key))
}

func noScriptOfOwn(f *fixture) {
	tr, key := f.open(), f.name()
	unknown := transport.NewScript("unknown", "return '"+key+"'")
	o := f.do(tr, command("EVALSHA", 0, unknown.SHA(), 1, key))
	assert.True(f.t, transport.IsCode(o.err, "NOSCRIPT"), "%v", o.err)
}
