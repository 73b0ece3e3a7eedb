package luasrc

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// semaphoreScenarios are the vectors of docs/protocol.md for semaphores, with the differences.
var semaphoreScenarios = []scenario{
	{"S1 a counter", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		of := func(n int64) map[string]any { return counter(l, n) }
		return []vector{
			// Redisson's sends one message in all.
			trySet(l, 3, 0).gives(int64(1), "", of(3), channel+" 1", channel+" 1", channel+" 3").then("SET", l, 10),
			trySet(l, 5, 0).gives(int64(0), "", of(10)),
			take(l, 4).gives(int64(6), "", of(6)),
			take(l, 7).gives(answers(-1, 6), "", of(6)),
			more(l, 2).gives(int64(8), "", of(8), channel+" 1", channel+" 8"), // Redisson's sends the last alone
			moreIfThere(l, 1).gives(int64(1), "", of(9), channel+" 9"),
			take(l, 9).gives(int64(0), "", of(0)),
			take(l, 1).gives(answers(-1, 0), "", of(0)),
			trySet(l, 5, 0).gives(int64(0), "", of(0)),
			more(l, 8).gives(int64(8), "", of(8), repeated(channel, 7, 8)...),
			// Redisson's announces permits that are not available.
			more(l, -20).gives(int64(-12), "", of(-12)),
			take(l, 1).gives(answers(-1, -12), "", of(-12)),
			drain(l).gives(int64(-12), "", of(0)), // Redisson's answers the text
			drain(l).gives(int64(0), "", of(0)),
			more(l, 0).gives(int64(0), "", of(0)),
		}
	}},
	{"S2 a counter that is not there", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		return []vector{
			take(l, 1).gives(answers(-1), "", nothing),
			drain(l).gives(int64(0), "", nothing),
			moreIfThere(l, 1).gives(int64(0), "", nothing),
			more(l, 3).gives(int64(3), "", counter(l, 3), repeated(channel, 2, 3)...).then("DEL", l),
			trySet(l, 2, 50000).gives(int64(1), "", lock(l, 50000, "", "2"), repeated(channel, 1, 2)...).then("DEL", l),
			more(l, -2).gives(int64(-2), "", counter(l, -2)),
		}
	}},
	{"a counter keeps its TTL", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		of := func(n string) map[string]any { return lock(l, 60000, "", n) }
		return []vector{
			command("SET", l, 9, "PX", 60000).gives("OK", "", of("9")),
			take(l, 1).gives(int64(8), "", of("8")),
			moreIfThere(l, 1).gives(int64(1), "", of("9"), channel+" 9"),
			take(l, 1).gives(int64(8), "", of("8")),
			// Redisson's lose the time to live.
			more(l, 1).gives(int64(9), "", of("9"), channel+" 9"),
			drain(l).gives(int64(9), "", of("0")),
		}
	}},
	{"messages of a counter", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		return []vector{
			command("SET", l, -3).gives("OK", "", counter(l, -3)),
			more(l, 2).gives(int64(-1), "", counter(l, -1)),
			more(l, 3).gives(int64(2), "", counter(l, 2), channel+" 1", channel+" 2"),
			// At most a hundred.
			more(l, 1000).gives(int64(1002), "", counter(l, 1002), repeated(channel, 99, 1002)...),
			more(l, -2).gives(int64(1000), "", counter(l, 1000)),
		}
	}},
	{"a counter under a key of another kind", func(l string) []vector {
		hash, text := lock(l, -1, "a", "1"), map[string]any{l: "seven"}
		return []vector{
			command("HSET", l, "a", "1").gives(int64(1), "", hash),
			take(l, 1).gives(failure("WRONGTYPE"), "", hash),
			more(l, 1).gives(failure("WRONGTYPE"), "", hash),
			moreIfThere(l, 1).gives(failure("WRONGTYPE"), "", hash),
			drain(l).gives(failure("WRONGTYPE"), "", hash),
			trySet(l, 1, 0).gives(failure("WRONGTYPE"), "", hash).then("DEL", l).then("SET", l, "seven"),
			take(l, 1).gives(failure("ERR"), "", text),
			more(l, 1).gives(failure("ERR"), "", text),
			moreIfThere(l, 1).gives(failure("ERR"), "", text),
			drain(l).gives(failure("ERR"), "", text),
			permit(l, began, 5000, permitA).gives(failure("ERR"), "", text),
			unpermit(l, began, permitA).gives(failure("ERR"), "", text).then("SET", l, "1.5"),
			take(l, 1).gives(failure("ERR"), "", map[string]any{l: "1.5"}),
		}
	}},
	{"P1 permits with leases", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		c := began + 5000
		out := permits(l, 0, permitA, forever, permitB, forever, permitC, c)
		return []vector{
			trySet(l, 3, 0).gives(int64(1), "", counter(l, 3), repeated(channel, 2, 3)...),
			permit(l, began, forever-began, permitA, permitB).gives(int64(1), "", permits(l, 1, permitA, forever, permitB, forever)),
			permit(l, began, 5000, permitC).gives(int64(0), "", out),
			permit(l, began+1, 5000, permitD).gives(answers(4999, 0, 3), "", out),
			countPermits(l, began+1).gives(answers(1, 0, 3), "", out),
			// Redisson's returns 0 for an expired permit, 1 for another.
			unpermit(l, began+9000, permitC).gives(answers(1, 1), "", permits(l, 1, permitA, forever, permitB, forever), channel+" 1"),
			unpermit(l, began+9000, permitC).gives(answers(0, 0), "", permits(l, 1, permitA, forever, permitB, forever)),
			// Redisson's releases none if one is unknown.
			unpermit(l, began, permitA, permitD).gives(answers(1, 0), "", permits(l, 2, permitB, forever), channel+" 2"),
			permit(l, began, 5000, permitC, permitD, permitA).gives(answers(-1, 2, 3), "", permits(l, 2, permitB, forever)),
			permit(l, began, 5000, permitC, permitD).gives(int64(0), "", permits(l, 0, permitB, forever, permitC, c, permitD, c)),
			// Redisson's sends the number of released permits.
			unpermit(l, began, permitB, permitC, permitD).gives(answers(3, 0), "", counter(l, 3), repeated(channel, 2, 3)...),
		}
	}},
	{"P2 permits whose leases are over", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		three := permits(l, 0, permitA, began+100, permitB, began+200, permitC, forever)
		return []vector{
			command("SET", l, 3).gives("OK", "", counter(l, 3)),
			permit(l, began, 100, permitA).gives(int64(2), "", permits(l, 2, permitA, began+100)),
			permit(l, began, 200, permitB).gives(int64(1), "", permits(l, 1, permitA, began+100, permitB, began+200)),
			permit(l, began, forever-began, permitC).gives(int64(0), "", three),
			permit(l, began+50, 1000, permitD).gives(answers(50, 0, 3), "", three),
			// Redisson's release it.
			countPermits(l, began+150).gives(answers(1, 1, 2), "", three),
			countPermits(l, began+200).gives(answers(1, 2, 1), "", three),
			// Redisson's releases as many as it acquires.
			permit(l, began+300, 1000, permitD).gives(int64(1), "", permits(l, 1, permitC, forever, permitD, began+1300), channel+" 1"),
			permit(l, began+1300, 100, permitA, permitB, permitD).gives(answers(-1, 2, 3), "", permits(l, 2, permitC, forever), channel+" 2"),
			permit(l, began, 100, permitA).gives(int64(1), "", permits(l, 1, permitC, forever, permitA, began+100)),
			// Permits that are acquired again are not announced.
			permit(l, began+100, 100, permitB, permitD).gives(int64(0), "", permits(l, 0, permitC, forever, permitB, began+200, permitD, began+200)),
		}
	}},
	{"P3 more and fewer permits", func(l string) []vector {
		channel, key := protocol.SemaphoreChannel(l), protocol.PermitsKey(l)
		out := []any{permitA, began + 5000, permitB, began + 5000, permitC, began + 5000}
		return []vector{
			command("SET", l, 3).gives("OK", "", counter(l, 3)),
			permit(l, began, 5000, permitA, permitB, permitC).gives(int64(0), "", permits(l, 0, out...)),
			setPermits(l, 2).gives(int64(-1), "", permits(l, -1, out...)), // Redisson's sends 2
			setPermits(l, 2).gives(int64(-1), "", permits(l, -1, out...)),
			more(l, -1).gives(int64(-2), "", permits(l, -2, out...)),
			more(l, 5).gives(int64(3), "", permits(l, 3, out...), repeated(channel, 2, 3)...), // Redisson's sends 5
			setPermits(l, 7).gives(int64(4), "", permits(l, 4, out...), channel+" 4"),
			setPermits(l, 6).gives(int64(3), "", permits(l, 3, out...)).then("PEXPIRE", l, 50000),
			permit(l, began, 5000, permitD).gives(int64(2), "", also(lock(l, 50000, "", "2"), map[string]any{
				key: expiring(ends(append(out, permitD, began+5000)...), 1),
			})),
			unpermit(l, began, permitA, permitA).gives(answers(1, 0), "", also(lock(l, 50000, "", "3"), map[string]any{
				key: expiring(ends(append(out[2:], permitD, began+5000)...), 1),
			}), channel+" 3"),
		}
	}},
	{"P4 permits without a semaphore", func(l string) []vector {
		channel := protocol.SemaphoreChannel(l)
		return []vector{
			permit(l, began, 5000, permitA).gives(answers(-1), "", nothing),
			countPermits(l, began).gives(answers(0, 0, 0), "", nothing),
			unpermit(l, began, permitA).gives(answers(0, 0), "", nothing),
			setPermits(l, 2).gives(int64(2), "", counter(l, 2), repeated(channel, 1, 2)...),
			// The number is gone, and a permit is acquired.
			permit(l, began, 5000, permitA).gives(int64(1), "", permits(l, 1, permitA, began+5000)).then("DEL", l),
			permit(l, began, 5000, permitB).gives(answers(5000), "", map[string]any{protocol.PermitsKey(l): ends(permitA, began+5000)}),
			unpermit(l, began, permitA).gives(answers(1, 0), "", counter(l, 1), channel+" 1"),
		}
	}},
	{"permits with the keys of another kind", func(l string) []vector {
		key := protocol.PermitsKey(l)
		hash, listed := lock(l, -1, "a", "1"), also(counter(l, 2), map[string]any{key: queue{"a"}})
		dead := also(hash, map[string]any{key: ends(permitA, began)})
		renewal := filled(func(c *transport.Call) {
			FillPermitRenew(c, began, 1, func(int) (any, any, any) { return key, permitA, int64(5000) })
		})
		var all []vector
		for _, state := range []map[string]any{hash, dead} {
			if len(state) > len(hash) {
				all = append(all, command("ZADD", key, began, permitA).gives(int64(1), "", dead))
			} else {
				all = append(all, command("HSET", l, "a", "1").gives(int64(1), "", hash))
			}
			all = append(all,
				permit(l, began+100, 5000, permitB).gives(failure("WRONGTYPE"), "", state),
				unpermit(l, began, permitA).gives(failure("WRONGTYPE"), "", state),
				setPermits(l, 3).gives(failure("WRONGTYPE"), "", state),
				countPermits(l, began).gives(failure("WRONGTYPE"), "", state),
			)
		}
		return append(all,
			command("DEL", l, key).gives(int64(2), "", nothing).then("SET", l, 2).then("RPUSH", key, "a"),
			permit(l, began, 5000, permitA).gives(failure("WRONGTYPE"), "", listed),
			unpermit(l, began, permitA).gives(failure("WRONGTYPE"), "", listed),
			setPermits(l, 3).gives(failure("WRONGTYPE"), "", listed),
			countPermits(l, began).gives(failure("WRONGTYPE"), "", listed),
			renewal.gives(answers(0), "", listed),
		)
	}},
	{"permits are renewed", func(l string) []vector {
		l2 := l + ":2"
		type item struct {
			of    string
			ids   string
			lease int64
		}
		renewed := func(at int64, items ...item) vector {
			return filled(func(c *transport.Call) {
				FillPermitRenew(c, at, len(items), func(i int) (any, any, any) {
					return protocol.PermitsKey(items[i].of), items[i].ids, items[i].lease
				})
			})
		}
		a, later := permits(l, 1, permitA, began+5000, permitB, began+5000), permits(l, 1, permitA, began+9002, permitB, began+9002)
		c := permits(l2, 0, permitC, forever)
		all := also(later, c)
		return []vector{
			command("SET", l, 3).gives("OK", "", counter(l, 3)),
			permit(l, began, 5000, permitA, permitB).gives(int64(1), "", a),
			renewed(began+2, item{l, permitA + permitB, 9000}).gives(answers(1), "", later),
			renewed(began+3, item{l, permitA + permitB, 9000}, item{l, permitD, 9000}).gives(answers(1, 0), "",
				permits(l, 1, permitA, began+9003, permitB, began+9003)),
			renewed(began+1, item{l, permitA + permitB, 9000}).gives(answers(1), "", permits(l, 1, permitA, began+9003, permitB, began+9003)),
			command("ZADD", protocol.PermitsKey(l), began+9002, permitA, began+9002, permitB).gives(int64(0), "", later).then("SET", l2, 1),
			permit(l2, began, forever-began, permitC).gives(int64(0), "", all),
			// A missing permit fails its own hold only.
			renewed(began+5, item{l2, permitC, 7000}, item{l, permitA + permitD, 20000}, item{l, permitD + permitB, 20000}).gives(answers(1, 0, 0), "", all),
			renewed(began+5, item{l2 + "x", permitC, 7000}, item{l, permitB, 9000}).gives(answers(0, 1), "",
				also(permits(l, 1, permitA, began+9002, permitB, began+9005), c)),
			renewed(began).gives(answers(), "", also(permits(l, 1, permitA, began+9002, permitB, began+9005), c)),
		}
	}},
	{"permits are written once more", func(l string) []vector {
		replicate := func(ids string) vector {
			return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Replicate(c, ids) })
		}
		two := permits(l, 1, permitA, began+5000, permitB, began+5000)
		return []vector{
			replicate(permitA).gives(nil, "", nothing).then("SET", l, 3),
			permit(l, began, 5000, permitA, permitB).gives(int64(1), "", two),
			replicate(permitA+permitB).gives(int64(1), "", two),
			replicate(permitA+permitC).gives(nil, "", two),
		}
	}},
	{"a semaphore is inspected", func(l string) []vector {
		inspect := func(first, last int64) vector {
			return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Inspect(c, first, last) })
		}
		two := permits(l, 1, permitA, began+5000, permitB, forever)
		return []vector{
			inspect(0, -1).gives([]any{int64(-2), "", int64(0), []any{}}, "", nothing).then("SET", l, 3),
			permit(l, began, 5000, permitA).gives(int64(2), "", permits(l, 2, permitA, began+5000)),
			permit(l, began, forever-began, permitB).gives(int64(1), "", two),
			inspect(0, -1).gives([]any{int64(-1), "1", int64(2), []any{
				permitA, strconv.Itoa(began + 5000), permitB, strconv.Itoa(forever),
			}}, "", two),
			inspect(1, 1).gives([]any{int64(-1), "1", int64(2), []any{permitB, strconv.Itoa(forever)}}, "", two),
		}
	}},
}

func TestSemaphoreScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newQuietStage, semaphoreScenarios...)
}

var (
	permitA, permitB = strings.Repeat("\xa1", 16), strings.Repeat("\xb2", 16)
	permitC, permitD = strings.Repeat("\xc3", 16), strings.Repeat("\xd4", 16)
)

const (
	began   = 1795224888771
	forever = protocol.PermitForever
)

func counter(l string, n int64) map[string]any { return map[string]any{l: strconv.FormatInt(n, 10)} }

// permits is a state of n available permits, and pairs of id and end of lease.
func permits(l string, n int64, taken ...any) map[string]any {
	state := counter(l, n)
	if len(taken) > 0 {
		state[protocol.PermitsKey(l)] = ends(taken...)
	}
	return state
}

func ends(taken ...any) timeouts {
	all := timeouts{}
	for pair := range slices.Chunk(taken, 2) {
		id, _ := pair[0].(string)
		at, _ := pair[1].(int)
		all[id] = float64(at)
	}
	return all
}

func semaphoreOf(l string) Permits {
	return Permits{Counter{l, protocol.SemaphoreChannel(l), "PUBLISH"}, protocol.PermitsKey(l)}
}

func onSemaphore(l string, fill func(s *Permits, c *transport.Call)) vector {
	s := semaphoreOf(l)
	return filled(func(c *transport.Call) { fill(&s, c) })
}

// repeated are the messages of a release.
func repeated(channel string, ones, now int) []string {
	all := slices.Repeat([]string{channel + " 1"}, ones)
	return append(all, channel+" "+strconv.Itoa(now))
}
