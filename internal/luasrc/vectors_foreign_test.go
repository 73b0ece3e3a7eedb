package luasrc

import "github.com/redlatch/redlatch/transport"

func kindsOfKeys(l string) []vector {
	look := filled(func(c *transport.Call) { FillKindOf(c, l) })
	theirs := held{counts: map[string]string{"name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"name": "bob", "node:a:-57": "1"}, pttl: -1}
	readers := held{counts: map[string]string{"name": "bob", "node:a:-57": "1", "mode": "read"}, pttl: -1}
	return []vector{
		look.gives(nil, "HKEYS", nil).then("HSET", l, "name", "bob"),
		look.gives(nil, "HKEYS", map[string]any{l: theirs}).then("HSET", l, "node:a:-57", 1),
		look.gives("lock", "HKEYS", map[string]any{l: ours}).then("HSET", l, "mode", "read"),
		look.gives("read/write", "HGET", map[string]any{l: readers}).then("DEL", l).then("SET", l, "a text"),
		look.gives(nil, "GET", map[string]any{l: "a text"}).then("SET", l, "-7"),
		look.gives("number", "GET", map[string]any{l: "-7"}),
	}
}

func foreignOrNot(l string) []vector {
	look := filled(func(c *transport.Call) { FillForeign(c, l) })
	const asks = "HKEYS"
	theirs := held{counts: map[string]string{"age": "4", "name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"age": "4", "name": "bob", "node:a:-57": "1"}, pttl: -1}
	return []vector{
		look.gives(nil, asks, nil).then("HSET", l, "age", 4, "name", "bob"),
		look.gives("age", asks, map[string]any{l: theirs}).then("HSET", l, "node:a:-57", 1),
		look.gives(nil, asks, map[string]any{l: ours}).then("DEL", l).then("SET", l, "a text"),
		look.gives(nil, asks, map[string]any{l: "a text"}),
	}
}
