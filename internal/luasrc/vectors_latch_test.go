package luasrc

import (
	"testing"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// latchScenarios are the vectors of docs/protocol.md for count-down latches.
var latchScenarios = []scenario{
	{"CL1 counts down and opens", func(l string) []vector {
		opened, closed := codec.CountDownChannel(l)+" 0", codec.CountDownChannel(l)+" 1"
		return []vector{
			countDown(l).gives(nil, "", nothing),
			setLatch(l, 2).gives(int64(1), "", count(l, "2"), closed),
			setLatch(l, 5).gives(int64(0), "", count(l, "2")),
			countDown(l).gives(nil, "", count(l, "1")),
			countDown(l).gives(nil, "", nothing, opened),
			countDown(l).gives(nil, "", nothing),
			deleteLatch(l).gives(int64(0), "", nothing),
			setLatch(l, 1).gives(int64(1), "", count(l, "1"), closed),
			deleteLatch(l).gives(int64(1), "", nothing, closed),
			setLatch(l, 9_007_199_254_740_993).gives(int64(1), "", count(l, "9007199254740993"), closed),
			countDown(l).gives(nil, "", count(l, "9007199254740992")),
		}
	}},
	// Redisson's trySetCount accepts any number, package rlatch only numbers above 0.
	{"CL2 counts that Redisson lets in", func(l string) []vector {
		opened, closed := codec.CountDownChannel(l)+" 0", codec.CountDownChannel(l)+" 1"
		return []vector{
			setLatch(l, 0).gives(int64(1), "", count(l, "0"), closed),
			setLatch(l, 3).gives(int64(0), "", count(l, "0")),
			deleteLatch(l).gives(int64(1), "", nothing, closed),
			setLatch(l, -3).gives(int64(1), "", count(l, "-3"), closed),
			countDown(l).gives(nil, "", nothing).then("SET", l, "1"),
			countDown(l).gives(nil, "", nothing, opened),
		}
	}},
	{"names of latches with braces", func(l string) []vector {
		var all []vector
		for _, name := range []string{"{" + l + "}x", "a{" + l, "замок " + l, l + "}"} {
			all = append(all,
				setLatch(name, 1).gives(int64(1), "", count(name, "1"), "redisson_countdownlatch__channel__{"+name+"} 1"),
				countDown(name).gives(nil, "", nothing, "redisson_countdownlatch__channel__{"+name+"} 0"))
		}
		return all
	}},
	// Redisson's delete removes any key.
	{"keys that are no latch", func(l string) []vector {
		hash := lock(l, -1, ownerA, "1")
		return []vector{
			command("HSET", l, ownerA, "1").gives(int64(1), "", hash),
			setLatch(l, 2).gives(failure("WRONGTYPE"), "", hash),
			countDown(l).gives(failure("WRONGTYPE"), "", hash),
			deleteLatch(l).gives(failure("WRONGTYPE"), "", hash).then("DEL", l).then("SET", l, "text"),
			setLatch(l, 2).gives(int64(0), "", count(l, "text")),
			countDown(l).gives(failure("ERR"), "", count(l, "text")),
			deleteLatch(l).gives(failure("ERR"), "", count(l, "text")),
		}
	}},
}

func TestLatchScriptsDoWhatTheVectorsSay(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newQuietStage, latchScenarios...)
}

func latchCall(l string, fill func(latch *Latch, c *transport.Call)) vector {
	latch := Latch{Key: l, Channel: codec.CountDownChannel(l), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&latch, c) })
}

func setLatch(l string, count int64) vector {
	return latchCall(l, func(latch *Latch, c *transport.Call) { latch.Set(c, count) })
}

func countDown(l string) vector {
	return latchCall(l, func(latch *Latch, c *transport.Call) { latch.CountDown(c) })
}

func deleteLatch(l string) vector {
	return latchCall(l, func(latch *Latch, c *transport.Call) { latch.Delete(c) })
}

func count(l, text string) map[string]any { return map[string]any{l: text} }
