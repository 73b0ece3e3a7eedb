package luasrc

import (
	"flag"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", strconv.Itoa(testlevel.Rounds(30, 100))) // a flag on the command line overrides it
	redistest.Main(m)
}

func TestScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newStage, scenarios...)
}

func TestScriptsOnForeignKeysMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newQuietStage, foreignScenarios...)
}

var foreignScenarios = []scenario{
	{"hashes of other programs", foreignOrNot}, {"a key of each kind", kindsOfKeys},
	{"fair: keys of other types", fairWrongTypes}, {"fair: inspection", fairInspected},
}

func playOnEachServer(t *testing.T, stage func(*testing.T, redistest.Target) *stage, all ...scenario) {
	t.Helper()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		s := stage(t, target)
		for _, sc := range all {
			assert.NoError(t, s.play(sc))
		}
	})
}

func TestScriptsPublishWithGivenCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t))
	_, err := s.conn.Do("SPUBLISH", "none", "0")
	if err != nil && strings.Contains(err.Error(), "unknown command") {
		t.Skipf("a server from before Redis 7, without sharded pub/sub: %v", err)
	}
	require.NoError(t, err)
	for _, sc := range shardScenarios {
		require.NoError(t, s.play(sc))
	}
	require.NoError(t, s.tellFair(fairShard))
}

func TestRenewReturnsErrorsAffectingAllKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := redistest.Key(t)
	server.Do(t, "HSET", l, ownerA, "1")
	server.Do(t, "ACL", "SETUSER", "blind", "on", "nopass", "~*", "+eval", "+pexpire")
	conn := server.Dial(t)
	_, err := conn.Do("AUTH", "blind", "any")
	require.NoError(t, err)
	reply, err := conn.Do("EVAL", Renew.Text(), 1, l, ownerA, 30000)
	require.Error(t, err, "a missing right does not prove a loss: got %v", reply)
}

// Redis does not roll a script back.
func TestOutOfMemoryTransferKeepsLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction"))
	s.Do(t, "HSET", "lock", ownerA, "1")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	conn := s.Dial(t)
	_, err := conn.Do("EVAL", Pass.Text(), 1, "lock", ownerA, ownerB, 30000)
	require.ErrorContains(t, err, "OOM")
	counts, err := redis.StringMap(conn.Do("HGETALL", "lock"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{ownerA: "1"}, counts)
	_, err = conn.Do("CONFIG", "SET", "maxmemory", "0")
	require.NoError(t, err)
	reply, err := conn.Do("EVAL", Pass.Text(), 1, "lock", ownerA, ownerB, 30000)
	require.NoError(t, err, "a check of the check")
	require.Nil(t, reply)
}

// Redis rejects a script's first write if it is out of memory and the command may need some.
func TestReleaseAndRenewalNeedNoMemory(t *testing.T) {
	t.Parallel()
	s := newQuietStage(t, redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction")))
	full := func(bytes int, state map[string]any) vector {
		return command("CONFIG", "SET", "maxmemory", bytes).gives("OK", "", state)
	}
	for _, sc := range []scenario{
		{"plain", func(l string) []vector {
			held := lock(l, 10000, ownerA, "2")
			return []vector{
				acquire(l, ownerA, 10000).gives(nil, "", lock(l, 10000, ownerA, "1")), acquire(l, ownerA, 10000).gives(nil, "", held),
				full(1, held),
				renew(lease{l, ownerA, 30000}).gives(answers(1), "", lock(l, 30000, ownerA, "2")),
				release(l, ownerA, 1, 30000).gives(int64(0), "", lock(l, 30000, ownerA, "1")),
				releaseShared(l, ownerA).gives(int64(1), "", latched(protocol.LatchKey(l, requestID), "1"), codec.LockChannel(l)+" 0"),
				full(0, latched(protocol.LatchKey(l, requestID), "1")),
			}
		}},
		{"readers", func(l string) []vector {
			read := func(ms int64) map[string]any {
				return also(lock(l, ms, "mode", "read", ownerA, "1"), holdOf(l, ownerA, 1, ms))
			}
			done := latched(protocol.LatchKey(l, requestID), "1")
			return []vector{
				enter(l, ownerA, 10000).gives(nil, "", read(10000)),
				full(1, read(10000)),
				reads(lease{l, ownerA, 30000}).gives(answers(1), "", read(30000)),
				leaveShared(l, ownerA, 30000).gives(int64(1), "", done, protocol.ReadWriteChannel(l)+" 0").then("CONFIG", "SET", "maxmemory", 0),
				command("DEL", protocol.LatchKey(l, requestID)).gives(int64(1), "", nothing),
			}
		}},
		{"permits", func(l string) []vector {
			channel, taken := protocol.SemaphoreChannel(l), permits(l, 1, permitA, began+5000)
			return []vector{
				command("SET", l, 2).gives("OK", "", counter(l, 2)), permit(l, began, 5000, permitA).gives(int64(1), "", taken),
				full(1, taken),
				filled(func(c *transport.Call) {
					FillPermitRenew(c, began, 1, func(int) (any, any, any) { return protocol.PermitsKey(l), permitA, int64(9000) })
				}).gives(answers(1), "", permits(l, 1, permitA, began+9000)),
				unpermit(l, began, permitA).gives(answers(1, 0), "", counter(l, 2), channel+" 2"),
				more(l, 1).gives(int64(3), "", counter(l, 3), channel+" 3"),
				full(0, counter(l, 3)),
			}
		}},
		{"latch", func(l string) []vector {
			return []vector{
				command("SET", l, 2).gives("OK", "", count(l, "2")), full(1, count(l, "2")),
				countDown(l).gives(nil, "", count(l, "1")),
				countDown(l).gives(nil, "", nothing, protocol.CountDownChannel(l)+" 0"),
				full(0, nothing),
			}
		}},
	} {
		require.NoError(t, s.play(sc))
	}
	require.NoError(t, s.tellFair(fairStory{"fair", func(f *fairPlayer) {
		f.acquire(a9, 0, fairWait)
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30))
		_, err := s.conn.Do("CONFIG", "SET", "maxmemory", 1)
		require.NoError(t, err)
		f.beat(0, nil, 64, waiter{a1, 5})
		f.giveUp(a2, 0, 5)
		f.evict(entry{a1, int64(f.Deadlines[a1])})
		f.release(a9, 0, 0)
		f.nudge(a3)
	}}))
}
