//go:build linux

package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const s = time.Second

// deed is one hold: acquired at from, released at to.
type deed struct {
	owner    string
	from, to Time
}

// records returns a call of a millisecond, samples, and an unlock.
func (d deed) records(id string) []Record {
	return []Record{
		{T: d.from - time.Millisecond, P: "p", Kind: Call, ID: id, Op: "lock", Key: "k"},
		{T: d.from, P: "p", Kind: Return, ID: id},
		{T: d.from, P: "p", Kind: Grant, ID: id, Hold: id, Key: "k", Owner: d.owner, Lease: 3 * s, Margin: s / 3, Renewed: true},
		{T: d.from, P: "p", Kind: Valid, Hold: id, Until: d.to + s},
		{T: d.to, P: "p", Kind: Give, Hold: id, Op: "unlock"},
		{T: d.to, P: "p", Kind: Call, ID: id + "u", Op: "unlock", Key: "k", Hold: id},
		{T: d.to + time.Millisecond, P: "p", Kind: Return, ID: id + "u"},
	}
}

func history(deeds []deed, more ...Record) *Story {
	var all []Record
	for i, d := range deeds {
		all = append(all, d.records(fmt.Sprint("h", i))...)
	}
	return NewStory(append(all, more...))
}

// checks returns the names of the checks with findings.
func checks(s *Story) (names []string) {
	limits := Limits{Slack: 8 * time.Second, Idle: 5 * time.Second, Aftermath: func(Record, string) time.Duration { return time.Second }}
	for _, f := range s.Judge(limits) {
		names = append(names, f.Check)
	}
	return names
}

func TestOverlapNeedsTwoOwners(t *testing.T) {
	t.Parallel()
	assert.Empty(t, checks(history([]deed{{"a", 1 * s, 2 * s}, {"b", 2*s + 1, 3 * s}, {"c", 4 * s, 5 * s}})))
	assert.Equal(t, []string{"overlap"}, checks(history([]deed{{"a", 1 * s, 3 * s}, {"b", 2 * s, 4 * s}})))
	assert.Empty(t, checks(history([]deed{{"a", 1 * s, 4 * s}, {"a", 2 * s, 3 * s}, {"b", 5 * s, 6 * s}})), "holds of one owner")
}

func TestKilledHoldEndsAtDeathOrDeadline(t *testing.T) {
	t.Parallel()
	dead := []Record{
		{T: 1 * s, P: "q", Kind: Grant, ID: "d", Hold: "d", Key: "k", Owner: "z", Lease: 3 * s},
		{T: 1 * s, P: "q", Kind: Valid, Hold: "d", Until: 4 * s},
		{T: 9 * s, P: "q", Kind: Call, ID: "x"},
	}
	assert.Equal(t, 4*s, NewStory(dead).Holds["d"].To, "its deadline passed while it was stopped")
	killed := append(dead[:2:2], Record{T: 2 * s, P: "q", Kind: Kill}, Record{T: 9 * s, Kind: Kill})
	assert.Equal(t, 2*s, NewStory(killed).Holds["d"].To)
}

func TestEarlyEndedHoldLastsUntilLastSample(t *testing.T) {
	t.Parallel()
	over := Record{T: 3 * s, P: "q", Kind: Over, Hold: "d", Until: 2 * s, Err: "lost"}
	grant := []Record{
		{T: 1 * s, P: "q", Kind: Grant, ID: "d", Hold: "d", Key: "k", Owner: "z", Lease: 3 * s},
		{T: 1 * s, P: "q", Kind: Valid, Hold: "d", Until: 4 * s},
	}
	story := NewStory(append(grant, over))
	assert.Equal(t, 2*s, story.Holds["d"].To)
	assert.Equal(t, []string{"early"}, checks(story))

	over.Err = "closed"
	assert.Empty(t, checks(NewStory(append(grant, over))), "the client was closed")
	over.Err, over.T = "lost", 5*s
	assert.Empty(t, checks(NewStory(append(grant, over))), "its deadline has passed")
	forgot := Record{T: s + 1, Until: s + 2, Kind: Fault, Key: "*"}
	over.T = 3 * s
	grant[0].T -= time.Millisecond
	assert.Empty(t, checks(NewStory(append(grant, over, forgot))), "data loss")
}

func TestHoldContinuesAfterFailedHandover(t *testing.T) {
	t.Parallel()
	story := NewStory([]Record{
		{T: 1 * s, Kind: Grant, ID: "d", Hold: "d", Key: "k", Owner: "z"},
		{T: 1 * s, Kind: Valid, Hold: "d", Until: 4 * s},
		{T: 2 * s, Kind: Give, Hold: "d", Op: "hand-over"},
		{T: 3 * s, Kind: Kept, Hold: "d"},
		{T: 9 * s, Kind: Kill, P: "other"},
	})
	assert.Equal(t, 4*s, story.Holds["d"].To)
}

func TestOverlapExcusedForOneRenewalAfterDataLoss(t *testing.T) {
	t.Parallel()
	forgot := func(key string, at Time) Record { return Record{T: at, Until: at, Kind: Fault, Key: key} }
	deeds := []deed{{"a", 1 * s, 3 * s}, {"b", 2 * s, 4 * s}}
	assert.Empty(t, checks(history(deeds, forgot("k", 2*s-1))))
	assert.Empty(t, checks(history(deeds, forgot("*", 2*s-1))))
	assert.Contains(t, checks(history(deeds, forgot("other", 2*s-1))), "overlap")
	assert.Contains(t, checks(history(deeds, forgot("k", 1*s-time.Millisecond))), "overlap", "earlier data loss")
	late := append([]Record{forgot("k", 2*s-1)}, forgot("k", 2*s+s/2))
	assert.Empty(t, checks(history(deeds, late...)))
	deeds[0].to, deeds[1].to = 8*s, 9*s
	assert.Contains(t, checks(history(deeds, append(late, forgot("k", 7*s))...)), "overlap", "too long, then a later data loss")
	assert.Contains(t, checks(history(deeds, forgot("k", 2*s-1))), "overlap", "too long")
}

func TestOverlapExcusedWhileAnotherFaultHidesDataLoss(t *testing.T) {
	t.Parallel()
	checksOf := func(to, from, until Time) []string {
		records := append(deed{"a", 1 * s, to}.records("first"), deed{"b", 2 * s, to + s}.records("second")...)
		for i := range records {
			records[i].Lease *= 6 // 18 s
		}
		lost := Record{T: 2*s - 1, Until: 2*s - 1, Kind: Fault, Key: "*"}
		return checks(NewStory(append(records, lost, Record{T: from, Until: until, Kind: Fault})))
	}
	assert.Empty(t, checksOf(14*s, 2*s, 11*s))
	assert.Contains(t, checksOf(14*s, 2*s, 10*s), "overlap", "it ended early")
	assert.Contains(t, checksOf(14*s, 12*s, 14*s), "overlap", "it began late")
	assert.Contains(t, checksOf(21*s, 2*s, 21*s), "overlap", "longer than the lease")
}

// The owner that was notified last had acquired the lock first.
func TestOverlapExcusedWhenDataLossHitLastHolder(t *testing.T) {
	t.Parallel()
	sent := func(at Time) []Record {
		records := deed{"b", 2*s + s/100, 4 * s}.records("late")
		records[0].T = 1 * s // waited
		records[3].Until = at + 3*s - s/3
		return append(records, Record{T: 2*s - s/20, Until: 2*s - s/20, Kind: Fault, Key: "k"})
	}
	deeds := []deed{{"a", 2 * s, 3 * s}}
	assert.Empty(t, checks(history(deeds, sent(2*s-s/10)...)))
	assert.Contains(t, checks(history(deeds, sent(2*s-s/25)...)), "overlap", "requested after the fault")
}

func TestInterleavedMarksFoundWithoutClock(t *testing.T) {
	t.Parallel()
	deeds := []deed{{"a", 1 * s, 2 * s}, {"b", 3 * s, 4 * s}}
	mark := func(hold, entry string) Record { return Record{T: 5 * s, Kind: Mark, Hold: hold, Entry: entry} }
	assert.Empty(t, checks(history(deeds, mark("h0", "5-0"), mark("h0", "5-1"), mark("h1", "10-0"))))
	assert.Equal(t, []string{"marks"}, checks(history(deeds, mark("h0", "5-0"), mark("h0", "10-1"), mark("h1", "10-0"))))
}

func TestAuditContradictingHoldIsFound(t *testing.T) {
	t.Parallel()
	audit := func(change func(*Record)) *Story {
		r := Record{T: 2 * s, Kind: Audit, Hold: "h0", Until: 4 * s, TTL: 3 * s, Count: 1, Depth: 1, Exact: true}
		change(&r)
		return history([]deed{{"a", 1 * s, 5 * s}}, r)
	}
	assert.Empty(t, checks(audit(func(*Record) {})))
	assert.Equal(t, []string{"margin"}, checks(audit(func(r *Record) { r.TTL = 2*s + s/10 })))
	assert.Empty(t, checks(audit(func(r *Record) { r.TTL = -time.Millisecond })), "a key that never expires")
	assert.Equal(t, []string{"gone"}, checks(audit(func(r *Record) { r.Count = 0 })))
	assert.Equal(t, []string{"count"}, checks(audit(func(r *Record) { r.Count = 2 })))
	assert.Empty(t, checks(audit(func(r *Record) { r.Count, r.Exact = 2, false })))
	assert.Equal(t, []string{"count"}, checks(audit(func(r *Record) { r.Count, r.Depth, r.Exact = 1, 2, false })))
	assert.Empty(t, checks(audit(func(r *Record) { r.Count, r.Depth, r.Exact = 2, 0, false })))
	assert.Equal(t, []string{"count"}, checks(audit(func(r *Record) { r.Kind = Absent })))
}

func TestLossBeforeDeadlineIsFound(t *testing.T) {
	t.Parallel()
	records := deed{"a", 1 * s, 2 * s}.records("h")
	records[len(records)-1].Err = "lost"
	assert.Equal(t, []string{"early"}, checks(NewStory(records)))
}

func TestProofAfterDataLossIsRejected(t *testing.T) {
	t.Parallel()
	inner := []Record{
		{T: 3 * s, Kind: Call, ID: "i", Op: "lock", Key: "k", Hold: "h0"},
		{T: 3*s + 1, Kind: Return, ID: "i"},
		{T: 3*s + 1, Kind: Grant, ID: "i", Hold: "i", Outer: "h0", Key: "k", Owner: "a"},
	}
	deeds := []deed{{"a", 1 * s, 5 * s}}
	assert.Empty(t, checks(history(deeds, inner...)))
	forgot := Record{T: 2 * s, Until: 2*s + 1, Kind: Fault, Key: "k"}
	assert.Equal(t, []string{"re-entry"}, checks(history(deeds, append(inner, forgot)...)))
	forgot.T, forgot.Until = 3*s-1, 3*s+1
	assert.Empty(t, checks(history(deeds, append(inner, forgot)...)), "the order is unknown")
	inner[2].Owner = "b"
	assert.Contains(t, checks(history(deeds, inner...)), "re-entry")
}

func TestLateReturnIsFound(t *testing.T) {
	t.Parallel()
	call := Record{T: 1 * s, P: "p", Kind: Call, ID: "c", Op: "try-lock", Key: "k", Wait: s}
	back := Record{T: 1*s + 8*time.Second + s + 1, P: "p", Kind: Return, ID: "c"}
	assert.Equal(t, []string{"calls"}, checks(NewStory([]Record{call, back})))
	assert.Equal(t, []string{"calls"}, checks(NewStory([]Record{call})), "it never returned")
	assert.Empty(t, checks(NewStory([]Record{call, {T: 2 * s, P: "p", Kind: Kill}})))
	stop := Record{T: 2 * s, Until: 3 * s, P: "p", Kind: Stop}
	assert.Empty(t, checks(NewStory([]Record{call, back, stop})))
	twice := back
	twice.T += s
	assert.Equal(t, []string{"calls"}, checks(NewStory([]Record{call, twice, stop, stop})), "one stop, known twice")
	assert.Empty(t, checks(NewStory([]Record{call, twice, stop, {T: 5 * s / 2, Until: 4 * s, P: "p", Kind: Stop}})))
}

func TestFreeLockWithWaitersIsFound(t *testing.T) {
	t.Parallel()
	deeds := []deed{{"a", 1 * s, 2 * s}, {"b", 10 * s, 11 * s}}
	waits := []Record{{T: 1 * s, Kind: Call, ID: "w", Op: "lock", Key: "k", Wait: 99 * s}, {T: 12 * s, Kind: Return, ID: "w"}}
	assert.Equal(t, []string{"idle"}, checks(history(deeds, waits...)))
	assert.Empty(t, checks(history(deeds)), "no waiter")
	fault := Record{T: 5 * s, Until: 6 * s, Kind: Fault, Op: "x"}
	assert.Empty(t, checks(history(deeds, append(waits, fault)...)), "the calm parts are shorter")
	waits[1].T = 4 * s
	assert.Empty(t, checks(history(deeds, waits...)), "the waiter returned")
	waits[0].P = "q"
	killed := []Record{waits[0], {T: 4 * s, P: "q", Kind: Kill}}
	assert.Empty(t, checks(history(deeds, killed...)), "the waiter was killed")
	killed[1].T = 9 * s
	assert.Equal(t, []string{"idle"}, checks(history(deeds, killed...)), "only then")
}

func TestReadSkipsUnfinishedLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h.jsonl")
	w, err := Create(path, "p")
	require.NoError(t, err)
	var f Follower
	w.Write(Record{T: 5, Kind: Grant, Hold: "h"})
	got, err := f.Next(path)
	require.NoError(t, err)
	assert.Equal(t, []Record{{T: 5, P: "p", Kind: Grant, Hold: "h"}}, got)
	w.Write(Record{Kind: Kill, P: "q"})
	require.NoError(t, w.Close())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"t":7,"p`)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	got, err = f.Next(path)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, "q", got[0].P)
	assert.NotZero(t, got[0].T)
	_, err = f.Next(path + "x")
	require.Error(t, err)
}

func TestOwnersExplainLeftoverKeys(t *testing.T) {
	t.Parallel()
	var o Owners
	o.Add([]Record{
		{Kind: Life, P: "p", Owner: "uuid"},
		{T: 2, Kind: Kill, P: "q"},
		{T: 1, Kind: Life, P: "q", Owner: "dead"},
		{T: 3, Kind: Life, P: "q", Owner: "dying"},
		{Kind: Grant, Hold: "h1", Owner: "uuid:1"},
		{Kind: Give, Hold: "h1", Op: "let-expire"},
		{Kind: Grant, Hold: "h2", Owner: "uuid:2"},
		{Kind: Give, Hold: "h2", Op: "hand-over"},
		{Kind: Kept, Hold: "h2"},
		{Kind: Grant, Hold: "h3", Owner: "uuid:3"},
		{Kind: Give, Hold: "h3", Op: "unlock"},
		{Kind: Call, ID: "u3", Op: "unlock", Hold: "h3"},
	})
	o.Add([]Record{{Kind: Return, ID: "u3", Err: "uncertain"}})
	for owner, explained := range map[string]bool{
		"uuid:1": true, "uuid:2": false, "uuid:3": true, "uuid:4": false, "dead:1": true, "dying:1": true, "stranger": true,
	} {
		assert.Equal(t, explained, o.Explains(owner) != "", owner)
	}
	o.Add([]Record{{Kind: LifeOver, Owner: "uuid"}})
	assert.NotEmpty(t, o.Explains("uuid:4"))
}

func TestLongHistoryFindsAllOverlaps(t *testing.T) {
	t.Parallel()
	var deeds []deed
	for i := range 100 {
		from := Time(i+1) * s
		deeds = append(deeds, deed{fmt.Sprint("o", i), from, from + s/2})
	}
	assert.Empty(t, checks(history(deeds)))
	for _, at := range []int{1, 50, 99} {
		broken := append([]deed(nil), deeds...)
		broken[at].from = broken[at-1].from + s/4
		assert.Equal(t, []string{"overlap"}, checks(history(broken)), at)
	}
}
