package oracle

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// queueText queues an owner, with its deadline as the score, and returns the remaining time.
const queueText = `
local left = redis.call('PTTL', KEYS[1])
redis.call('ZINCRBY', KEYS[2], -5, 'first')
redis.call('ZADD', KEYS[2], left + tonumber(ARGV[1]) + tonumber(ARGV[2]), ARGV[3])
redis.call('RPUSH', KEYS[3], ARGV[3])
return left`

var queueScript = transport.NewScript("queue", queueText)

var queueUp = &Operation{
	Name:      "queue",
	TellsTime: true,
	Theirs: func(_ Release, s Step) Args {
		return Args{[]string{s.Names[0], "scores", "line"}, []string{clockNow, decimal(s.Wait), s.Owner}}
	},
	Ours: func(s Step, _ bool) Call {
		return Call{queueScript, []string{s.Names[0], "scores", "line"}, []any{s.Now, s.Wait, s.Owner}}
	},
}

const (
	owner, other = "11111111-1111-1111-1111-111111111111:1", "22222222-2222-2222-2222-222222222222:2"
	lease        = 30000
)

var queueCase = &Case{
	Operation: "queue", Does: "queues up",
	Before: State{
		"l":      {Type: "hash", Value: map[string]string{other: "1"}, Expires: lease},
		"scores": {Type: "zset", Value: map[string]float64{"first": 1795224888771}, Expires: never},
		"line":   {Type: "list", Value: []string{"first"}, Expires: never},
	},
	Step: Step{Op: queueUp, Names: []string{"l"}, Owner: owner, Now: 1795224888000, Wait: 5000},
}

var queueMutants = []struct{ does, old, new, what string }{
	{"nothing", "", "", ""},
	{"forgets the wait", "+ tonumber(ARGV[2])", "", "value"},
	{"asks the server's clock", "left + tonumber(ARGV[1])", "left + redis.call('TIME')[1] * 1000", "value"},
	{"answers a second more", "return left", "return left + 1000", "reply"},
	{"moves the others by one less", "-5", "-4", "value"},
	{"stands at the head", "RPUSH", "LPUSH", "value"},
	{"has another score and answer alike", "local left = redis.call('PTTL', KEYS[1])",
		"local left = redis.call('PTTL', KEYS[1]) + 1000", "reply"},
}

func dial(s *redistest.Server) func() (redis.Conn, error) {
	return func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }
}

func kinds(diffs []Diff) map[string]bool {
	all := map[string]bool{}
	for _, d := range diffs {
		all[d.What] = true
	}
	return all
}

func queueTheirs(t *testing.T) *Theirs {
	t.Helper()
	theirs := NewTheirs(parse(t, "4.3.1"))
	require.NoError(t, theirs.Learn(queueUp, monitor.Call{Script: queueText}))
	return theirs
}

func TestAnOperationWithScoresAndListsIsARow(t *testing.T) {
	t.Parallel()
	twin, err := NewTwin(dial(redistest.Start(t)), dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	theirs := queueTheirs(t)
	for _, m := range queueMutants {
		require.NoError(t, twin.Reset())
		for _, command := range [][]any{
			{"HSET", "l", other, "1"}, {"PEXPIRE", "l", lease},
			{"ZADD", "scores", 1795224888771, "first"}, {"RPUSH", "line", "first"},
		} {
			_, err := twin.Do(command[0].(string), command[1:]...)
			require.NoError(t, err)
		}
		outcome, err := twin.Play(theirs, queueMutant(m.old, m.new), queueCase.Step)
		require.NoError(t, err)
		requireOnly(t, m.does, m.what, outcome.Diffs)
	}
}

func TestARecordedOperationWithScoresAndListsIsARow(t *testing.T) {
	t.Parallel()
	stage, err := NewStage(dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close()) })
	results, err := stage.Record(queueTheirs(t), []*Case{queueCase})
	require.NoError(t, err)
	require.Len(t, results, 1)
	v := Vector{queueCase, &results[0]}
	require.Equal(t, Reply{int64(lease)}, v.Reply)
	require.Equal(t, map[string]float64{"first": 1795224888766, owner: 1795224923000}, v.After["scores"].Value)
	require.Equal(t, []string{"first", owner}, v.After["line"].Value)
	for _, m := range queueMutants {
		outcome, err := stage.Replay(queueMutant(m.old, m.new), v)
		require.NoError(t, err)
		requireOnly(t, m.does, m.what, outcome.Diffs)
	}
	outcome, err := stage.Replay(queueMutant("KEYS[1])", "KEYS[1]) - 1"), v)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"reply": true, "value": true}, kinds(outcome.Diffs), "a millisecond less")
}

func queueMutant(old, text string) Ours {
	return Ours{Instead: map[*transport.Script]string{queueScript: strings.Replace(queueText, old, text, 1)}}
}

func requireOnly(t *testing.T, does, what string, diffs []Diff) {
	t.Helper()
	if what == "" {
		require.Empty(t, diffs, does)
		return
	}
	require.True(t, kinds(diffs)[what], "%s: %v", does, diffs)
}
