package oracle

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func parse(t *testing.T, text string) Release {
	t.Helper()
	r, err := ParseRelease(text)
	require.NoError(t, err)
	return r
}

func TestReleasesDifferAsDocumented(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][3]bool{
		"3.17.7": {false, false, false},
		"3.21.9": {false, false, false},
		"3.22.0": {true, false, false},
		"3.24.0": {true, true, false},
		"3.43.9": {true, true, false},
		"3.44.0": {true, true, true},
		"4.0.0":  {true, true, true},
	} {
		r := parse(t, text)
		require.Equal(t, want, [3]bool{r.NamesPublish(), r.HasLatch(), r.RenewsBatches()}, text)
	}
	for _, text := range []string{"", "3", "3.17", "3.17.x", "3.17.7.1"} {
		_, err := ParseRelease(text)
		require.Error(t, err, text)
	}
}

func TestJavaLockObjectKeepsLeasePerRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int64{ // lease after a nested unlock, and after the last one
		"3.19.1": {7, 7}, "3.19.2": {3, 3}, "3.27.1": {3, 3}, "3.27.2": {7, 3}, "4.3.1": {7, 3},
	} {
		r := parse(t, text)
		require.Equal(t, want, [2]int64{r.LeaseAfterUnlock(7, 3, false), r.LeaseAfterUnlock(7, 3, true)}, text)
	}
}

func TestIdentifyRejectsUnexpectedCall(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	r := parse(t, "4.3.1")
	want := Step{Op: Free, Names: []string{"l"}, Owner: "o:1", Lease: 30000}
	good := func() monitor.Call {
		return monitor.Call{
			Keys: []string{"l", codec.LockChannel("l"), protocol.LatchKey("l", id)},
			Argv: []string{"0", "30000", "o:1", "PUBLISH", "17000"},
		}
	}
	require.NoError(t, Identify(r, good(), want))
	for does, spoil := range map[string]func(*monitor.Call){
		"another name":       func(c *monitor.Call) { c.Keys[0] = "m" },
		"another channel":    func(c *monitor.Call) { c.Keys[1] = "redisson_lock__channel:l" },
		"no latch":           func(c *monitor.Call) { c.Keys = c.Keys[:2] },
		"a short latch id":   func(c *monitor.Call) { c.Keys[2] = protocol.LatchKey("l", id[1:]) },
		"another lease":      func(c *monitor.Call) { c.Argv[1] = "1" },
		"another owner":      func(c *monitor.Call) { c.Argv[2] = "o:2" },
		"SPUBLISH":           func(c *monitor.Call) { c.Argv[3] = "SPUBLISH" },
		"a latch for ever":   func(c *monitor.Call) { c.Argv[4] = "9223372036854775807" },
		"one argument more":  func(c *monitor.Call) { c.Argv = append(c.Argv, "") },
		"arguments exchange": func(c *monitor.Call) { c.Argv[0], c.Argv[1] = c.Argv[1], c.Argv[0] },
	} {
		call := good()
		spoil(&call)
		require.Error(t, Identify(r, call, want), does)
	}
	require.Error(t, Identify(parse(t, "3.23.5"), good(), want))
}

func TestRefereeMatchesDifferencesAndReasons(t *testing.T) {
	t.Parallel()
	r := parse(t, "4.3.1")
	kind := &Kind{Diverges: []Divergence{{
		Name:     "meant",
		Applies:  func(r Release, o Ours) bool { return r.HasLatch() && !o.Shared },
		Explains: func(_ *Outcome, d Diff) bool { return d.What == "reply" },
	}}}
	referee := NewReferee(r, Ours{}, kind)
	require.Equal(t, []string{"meant"}, referee.Unseen())
	require.NoError(t, referee.Judge(&Outcome{Diffs: []Diff{{What: "reply"}}}))
	require.Empty(t, referee.Unseen())
	require.Error(t, referee.Judge(&Outcome{Diffs: []Diff{{What: "reply"}, {What: "ttl"}}}))

	step := Step{Op: Acquire}
	require.NoError(t, referee.JudgeAs(&Outcome{Step: step, Diffs: []Diff{{What: "reply"}}}, []string{"meant"}))
	require.Error(t, referee.JudgeAs(&Outcome{Step: step, Diffs: []Diff{{What: "reply"}}}, nil), "more than is meant")
	require.Error(t, referee.JudgeAs(&Outcome{Step: step}, []string{"meant"}), "less than is meant")

	for _, other := range []*Referee{NewReferee(parse(t, "3.17.7"), Ours{}, kind),
		NewReferee(r, Ours{Shared: true}, kind)} {
		require.Empty(t, other.Unseen(), "a divergence that does not apply need not occur")
		require.Error(t, other.Judge(&Outcome{Diffs: []Diff{{What: "reply"}}}))
	}
}

var theirsFromOurs = strings.NewReplacer("ARGV[1]", "ARGV[2]", "ARGV[2]", "ARGV[1]")

// ourselves returns our script as if it were Redisson's, so that the twin can be tested without Java.
func ourselves(t *testing.T, op *Operation, script string) *Theirs {
	t.Helper()
	theirs := NewTheirs(parse(t, "4.3.1"))
	require.NoError(t, theirs.Learn(op, monitor.Call{Script: script}))
	return theirs
}

func dial(s *redistest.Server) func() (redis.Conn, error) {
	return func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }
}

func newTwin(t *testing.T) *Twin {
	t.Helper()
	twin, err := NewTwin(dial(redistest.Start(t)), dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	return twin
}

func TestTwinDetectsDifferences(t *testing.T) {
	t.Parallel()
	twin := newTwin(t)
	step := Step{Op: Acquire, Names: []string{"l"}, Owner: "o:1", Lease: 30000}
	same := theirsFromOurs.Replace(luasrc.Acquire.Text())
	for theirs, what := range map[string]string{
		same: "",
		strings.Replace(same, "return left", "return -3", 1): "reply",
		"redis.call('SET', KEYS[1] .. 'x', '1')\n" + same:    "key",
		"redis.call('PEXPIRE', KEYS[1], 77000)":              "ttl",
		"redis.call('HSET', KEYS[1], 'o:2', '1')":            "value",
		"redis.call('ZINCRBY', 'scores', 1, 'a')\n" + same:   "value",
		"redis.call('LPUSH', 'line', 'a')\n" + same:          "value",
		"redis.call('PUBLISH', 'c', '0')":                    "messages",
	} {
		require.NoError(t, twin.Reset())
		for _, command := range [][]any{
			{"HSET", "l", "o:9", "1"}, {"PEXPIRE", "l", 60000}, {"ZADD", "scores", 1, "a"}, {"RPUSH", "line", "b"},
		} {
			_, err := twin.Do(command[0].(string), command[1:]...)
			require.NoError(t, err)
		}
		outcome, err := twin.Play(ourselves(t, Acquire, theirs), Ours{}, step)
		require.NoError(t, err)
		kinds := map[string]bool{}
		for _, d := range outcome.Diffs {
			kinds[d.What] = true
		}
		if what == "" {
			require.Len(t, outcome.Diffs, 1, "the holder's name")
			require.NoError(t, NewReferee(Release{}, Ours{}, &Plain).Judge(outcome))
			continue
		}
		require.True(t, kinds[what], "%s: %v", what, outcome.Diffs)
	}
}

// From version 7.2, servers freeze the time while a script is running, so slowPermit is not late.
const slowPermit = `
redis.call('DECRBY', KEYS[1], 1)
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[6])
local left = redis.call('PTTL', KEYS[1])
for _ = 1, 3000000 do end
redis.call('PEXPIRE', KEYS[2], left)
return 'OK'
`

func TestRemainingTTLToleratesDelay(t *testing.T) {
	t.Parallel()
	twin := newTwin(t)
	_, err := twin.Do("SET", "s", 2, "PX", 60000)
	require.NoError(t, err)
	step := Step{Op: PermitAcquire, Names: []string{"s"}, IDs: []string{strings.Repeat("1", 32)}, Lease: 30000}
	outcome, err := twin.Play(ourselves(t, PermitAcquire, slowPermit), Ours{}, step)
	require.NoError(t, err)
	require.NoError(t, NewReferee(parse(t, "4.3.1"), Ours{}, &Permits).Judge(outcome))
}

func TestReleaseHasOneScriptPerOperation(t *testing.T) {
	t.Parallel()
	theirs := ourselves(t, Acquire, "return 1")
	require.NoError(t, theirs.Learn(Acquire, monitor.Call{Script: "return 1"}))
	require.Error(t, theirs.Learn(Acquire, monitor.Call{Script: "return 2"}))
	require.Equal(t, []*Operation{Free, Force, Renew}, theirs.Missing(&Plain))
}

// A lock without a TTL gets the remaining time of its hold, which may be set again.
func TestRenewedHoldToleratesScriptTime(t *testing.T) {
	t.Parallel()
	hold := protocol.HoldKey("l", "c:1", 1)
	for late, explained := range map[int64]bool{-1: false, 0: true, 3: true, 4: false} {
		o := &Outcome{
			Step: Step{Op: ReadRenew, Names: []string{"l"}, Owner: "c:1"}, Elapsed: 3, Prior: State{hold: {Expires: 5000}},
			Theirs: Seen{After: State{hold: {Expires: 1000}}}, Ours: Seen{After: State{hold: {Expires: 5000 + late}}},
		}
		require.Equal(t, explained, isLonger(o, Diff{What: "ttl", Key: hold}), late)
	}
}
