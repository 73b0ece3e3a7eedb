package luasrc

import "github.com/redlatch/redlatch/transport"

func kindsOfKeys(l string) []vector {
	look := filled(func(c *transport.Call) { FillKindOf(c, l) })
	theirs := held{counts: map[string]string{"name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"name": "bob", "node:a:-57": "1"}, pttl: -1}
	readers := held{counts: map[string]string{"name": "bob", "node:a:-57": "1", "mode": "read"}, pttl: -1}
	return []vector{
		look.gives(nil, "HKEYS", nil),
		command("HSET", l, "name", "bob").gives(int64(1), "", map[string]any{l: theirs}),
		look.gives(nil, "HKEYS", map[string]any{l: theirs}),
		command("HSET", l, "node:a:-57", 1).gives(int64(1), "", map[string]any{l: ours}),
		look.gives("lock", "HKEYS", map[string]any{l: ours}),
		command("HSET", l, "mode", "read").gives(int64(1), "", map[string]any{l: readers}),
		look.gives("read/write", "HGET", map[string]any{l: readers}),
		command("DEL", l).gives(int64(1), "", nil),
		command("SET", l, "a text").gives("OK", "", map[string]any{l: "a text"}),
		look.gives(nil, "GET", map[string]any{l: "a text"}),
		command("SET", l, "-7").gives("OK", "", map[string]any{l: "-7"}),
		look.gives("number", "GET", map[string]any{l: "-7"}),
	}
}

func foreignOrNot(l string) []vector {
	look := filled(func(c *transport.Call) { FillForeign(c, l) })
	const asks = "HKEYS"
	theirs := held{counts: map[string]string{"age": "4", "name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"age": "4", "name": "bob", "node:a:-57": "1"}, pttl: -1}
	return []vector{
		look.gives(nil, asks, nil),
		command("HSET", l, "age", 4, "name", "bob").gives(int64(2), "", map[string]any{l: theirs}),
		look.gives("age", asks, map[string]any{l: theirs}),
		command("HSET", l, "node:a:-57", 1).gives(int64(1), "", map[string]any{l: ours}),
		look.gives(nil, asks, map[string]any{l: ours}),
		command("DEL", l).gives(int64(1), "", nil),
		command("SET", l, "a text").gives("OK", "", map[string]any{l: "a text"}),
		look.gives(nil, asks, map[string]any{l: "a text"}),
	}
}
