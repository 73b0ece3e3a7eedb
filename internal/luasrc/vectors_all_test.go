package luasrc

import (
	"testing"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// allScenarios are the vectors of docs/protocol.md for several plain locks.
var allScenarios = []scenario{
	{"ML1 all or none", func(l string) []vector {
		names := members(l, 3)
		a, b, c := names[0], names[1], names[2]
		all := also(lock(a, 30000, ownerA, "1"), lock(b, 30000, ownerA, "1"), lock(c, 30000, ownerA, "1"))
		foreign := lock(b, 50000, ownerB, "1")
		return []vector{
			acquireAll(names, ownerA, 30000).gives(nil, "", all),
			acquireAll(names, ownerB, 30000).gives([]any{about(30000), ownerA, int64(1)}, "", all),
			acquireAll(names, ownerA, 10000).gives(nil, "",
				also(lock(a, 10000, ownerA, "2"), lock(b, 10000, ownerA, "2"), lock(c, 10000, ownerA, "2"))),
			releaseAll(names, ownerA).gives([]any{int64(1), int64(1), int64(1)}, "", nothing,
				codec.LockChannel(a)+" 0", codec.LockChannel(b)+" 0", codec.LockChannel(c)+" 0"),
			acquire(b, ownerB, 50000).gives(nil, "", foreign),
			acquireAll(names, ownerA, 30000).gives([]any{about(50000), ownerB, int64(2)}, "", foreign).then("PERSIST", b),
			acquireAll(names, ownerA, 30000).gives([]any{int64(-1), ownerB, int64(2)}, "", lock(b, -1, ownerB, "1")),
		}
	}},
	{"ML2 one key is not a lock", func(l string) []vector {
		names := members(l, 3)
		text := map[string]any{names[1]: "no lock"}
		held := also(text, lock(names[0], 30000, ownerA, "1"))
		return []vector{
			command("SET", names[1], "no lock").gives("OK", "", text),
			acquireAll(names, ownerA, 30000).gives([]any{wrongType, "", int64(2)}, "", text),
			acquire(names[0], ownerA, 30000).gives(nil, "", held),
			releaseAll(names, ownerA).gives([]any{int64(1), nil, nil}, "", text, codec.LockChannel(names[0])+" 0"),
		}
	}},
	{"ML3 a release frees held locks", func(l string) []vector {
		names := members(l, 3)
		foreign := lock(names[1], 30000, ownerB, "1")
		return []vector{
			releaseAll(names, ownerA).gives([]any{nil, nil, nil}, "", nothing),
			acquire(names[1], ownerB, 30000).gives(nil, "", foreign),
			acquire(names[2], ownerA, 30000).gives(nil, "", also(foreign, lock(names[2], 30000, ownerA, "1"))),
			releaseAll(names, ownerA).gives([]any{nil, nil, int64(1)}, "", foreign, codec.LockChannel(names[2])+" 0"),
			releaseAll(names, ownerA).gives([]any{nil, nil, nil}, "", foreign),
		}
	}},
}

func TestMultiLockScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newQuietStage, allScenarios...)
}

func members(l string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, l+":"+string(rune('a'+i)))
	}
	return names
}

func allCall(names []string, fill func(a *All, c *transport.Call)) vector {
	a := All{Publish: "PUBLISH"}
	for _, name := range names {
		a.Keys, a.Channels = append(a.Keys, name), append(a.Channels, codec.LockChannel(name))
	}
	return filled(func(c *transport.Call) { fill(&a, c) })
}

func acquireAll(names []string, owner string, lease int64) vector {
	return allCall(names, func(a *All, c *transport.Call) { a.Acquire(c, owner, lease) })
}

func releaseAll(names []string, owner string) vector {
	return allCall(names, func(a *All, c *transport.Call) { a.Release(c, owner) })
}

// wrongType is the text of the error.
const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
