package luasrc

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestScriptsDoWhatTheVectorsSay(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newStage, scenarios...)
}

func TestScriptsOnForeignKeysDoWhatTheVectorsSay(t *testing.T) {
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

func TestScriptsPublishWithTheCommandTheyAreGiven(t *testing.T) {
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

func TestServersKnowScriptsByTheSameDigest(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		for _, script := range all {
			sha, err := redis.String(target.Do(t, "SCRIPT", "LOAD", script.Text()), nil)
			require.NoError(t, err)
			require.Equal(t, script.SHA(), sha, script.Name())
		}
	})
}

func TestRenewReturnsErrorsThatAreNotOfOneKeyAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := redistest.Key(t)
	server.Do(t, "HSET", l, ownerA, "1")
	server.Do(t, "ACL", "SETUSER", "blind", "on", "nopass", "~*", "+eval", "+pexpire")
	conn := server.Dial(t)
	_, err := conn.Do("AUTH", "blind", "any")
	require.NoError(t, err)
	reply, err := conn.Do("EVAL", Renew.Text(), 1, l, ownerA, 30000)
	require.Error(t, err, "no right to ask is no proof of loss, but the reply was %v", reply)
}

// Redis does not roll a script back.
func TestAServerWithoutMemoryRefusesToPassALockOnAndKeepsIt(t *testing.T) {
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
