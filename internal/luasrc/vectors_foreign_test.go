package luasrc

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestAHashOfAnotherProgramIsToldFromALock(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		s := newQuietStage(t, target)
		assert.NoError(t, s.play(scenario{"no lock and what may be one", foreignOrNot}))
	})
}

func foreignOrNot(l string) []vector {
	look := func(does string) vector {
		return filled(does, func(c *transport.Call) { FillForeign(c, l) })
	}
	const asks = "HKEYS"
	theirs := held{counts: map[string]string{"age": "4", "name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"age": "4", "name": "bob", "node:a:-57": "1"}, pttl: -1}
	return []vector{
		look("no key").gives(nil, asks, nil),
		command("HSET", l, "age", 4, "name", "bob").gives(int64(2), "", map[string]any{l: theirs}),
		look("of another program").gives("age", asks, map[string]any{l: theirs}),
		command("HSET", l, "node:a:-57", 1).gives(int64(1), "", map[string]any{l: ours}),
		look("an owner among its fields").gives(nil, asks, map[string]any{l: ours}),
		command("DEL", l).gives(int64(1), "", nil),
		command("SET", l, "a text").gives("OK", "", map[string]any{l: "a text"}),
		look("no hash").gives(nil, asks, map[string]any{l: "a text"}),
	}
}
