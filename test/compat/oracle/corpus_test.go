package oracle

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// queueText adds an owner to the queue, with its deadline as the score, and returns the remaining time.
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

func queueTheirs(t *testing.T) *Theirs {
	t.Helper()
	theirs := NewTheirs(parse(t, "4.3.1"))
	require.NoError(t, theirs.Learn(queueUp, monitor.Call{Script: queueText}))
	return theirs
}

func TestRecordingIsReproducible(t *testing.T) {
	t.Parallel()
	stage, err := NewStage(dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close()) })
	theirs := queueTheirs(t)
	require.NoError(t, theirs.Learn(Acquire, monitor.Call{Script: theirsFromOurs.Replace(luasrc.Acquire.Text())}))
	acquires := &Case{Operation: "acquire", Before: State{},
		Step: Step{Op: Acquire, Names: []string{"l"}, Owner: owner, Lease: lease}}
	cases := []*Case{queueCase, acquires}
	c := &Corpus{kind: &Kind{Name: "some", Operations: []*Operation{queueUp, Acquire}}, Cases: cases}
	folder := t.TempDir()
	var files []string
	for range 2 {
		results, err := stage.Record(theirs, cases)
		require.NoError(t, err)
		for i := range cases {
			cases[i].Results = results[i : i+1]
		}
		require.NoError(t, c.Save(folder))
		text, err := os.ReadFile(folder + "/some.json")
		require.NoError(t, err)
		files = append(files, string(text))
	}
	require.Equal(t, files[0], files[1])
	loaded, err := Load(folder, c.kind)
	require.NoError(t, err)
	require.Equal(t, c, loaded)
}

func resultOf(reply any, releases ...string) Result {
	return Result{Redisson: releases, Reply: Reply{reply}, After: State{}, Messages: []string{}}
}

func TestEqualReleasesShareResult(t *testing.T) {
	t.Parallel()
	first := &Case{Results: []Result{resultOf(nil, "3.9.0"), resultOf(int64(1), "3.17.7")}}
	second := &Case{Results: []Result{resultOf(nil, "3.9.0", "3.17.7")}}
	c := &Corpus{Cases: []*Case{first, second}}
	require.Len(t, c.Of(parse(t, "3.17.7")), 2)

	c.Replace(parse(t, "3.17.8"), []Result{resultOf(int64(1)), resultOf(nil)})
	require.Equal(t, "3.17.7", c.recorded(parse(t, "3.17.8")), "it does what the release before does")
	c.Replace(parse(t, "4.0.0"), []Result{resultOf(int64(1)), resultOf("new")})
	require.Equal(t, []Result{resultOf(nil, "3.9.0"), resultOf(int64(1), "3.17.7", "4.0.0")}, first.Results)
	require.Equal(t, []Result{resultOf(nil, "3.9.0", "3.17.7"), resultOf("new", "4.0.0")}, second.Results)
	c.Replace(parse(t, "3.9.0"), []Result{resultOf(int64(1)), resultOf(nil)})
	require.Equal(t, []Result{resultOf(int64(1), "3.9.0", "3.17.7", "4.0.0")}, first.Results)
}

func TestReplyRoundTrip(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		nil, int64(0), int64(-1), int64(1 << 62), "OK", wrongType, []any{}, []any{int64(1), nil, wrongType},
	} {
		text, err := Reply{value}.MarshalJSON()
		require.NoError(t, err)
		var got Reply
		require.NoError(t, got.UnmarshalJSON(text))
		require.Equal(t, value, got.Value)
	}
}

func TestInvalidCorpusReturnsError(t *testing.T) {
	t.Parallel()
	kind := &Kind{Name: "some", Operations: []*Operation{Acquire}}
	for _, text := range []string{
		"", "[", `[{"results": [{"reply": {"err": 1}}]}]`, `[{"results": [{"reply": 1.5}]}]`, `[{"operation": "none"}]`,
		`[{"before": {"l": {"type": "stream", "value": 1}}}]`,
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(folder+"/some.json", []byte(text), 0o600))
		_, err := Load(folder, kind)
		require.Error(t, err, text)
	}
}

// Servers before 7.0 do not have PEXPIRETIME. The fallback must return the same expiry on all servers.
func TestOldServersReportKeyExpiry(t *testing.T) {
	t.Parallel()
	s, err := newSide(dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	require.NoError(t, s.make(State{"l": {Type: "string", Value: "a"}, "m": {Type: "string", Value: "b"}}))
	const when = 4102444800123
	_, err = s.conn.Do("PEXPIREAT", "l", when)
	require.NoError(t, err)
	for name, want := range map[string]int64{"l": when, "m": never} {
		got, err := s.expires(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
