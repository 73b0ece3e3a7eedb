package redlatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/compat/oracle"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// ways are the ways in which we do what Redisson does, each with the differences
// that are meant.
var ways = []struct {
	name     string
	ours     oracle.Ours
	diverges []oracle.Divergence
}{
	{"an owner of our own", oracle.Ours{}, oracle.Diverges},
}

// testSteps plays random steps on both sides.
func (s scripts) testSteps(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			referee := oracle.NewReferee(s.release, way.diverges)
			rapid.Check(t, func(rt *rapid.T) {
				p := &player{rt: rt, scripts: s, ours: way.ours, referee: referee}
				require.NoError(rt, p.play())
			})
			require.Empty(t, referee.Unseen(), "listed differences that did not occur")
			s.noteSteps(t, way.name, referee, way.diverges)
		})
	}
}

func (s scripts) noteSteps(t *testing.T, way string, referee *oracle.Referee, diverges []oracle.Divergence) {
	t.Helper()
	for _, op := range oracle.Operations {
		require.Positive(t, referee.Steps(op), "steps of %s", op)
		s.table.note(t, s.release.String(), fmt.Sprintf("%s, %s", op, way), func() string {
			return fmt.Sprintf("same, %d steps", referee.Steps(op))
		})
	}
	for _, d := range diverges {
		s.table.note(t, s.release.String(), "  meant: "+d.Name, func() string {
			if !d.Applies(s.release) {
				return "–"
			}
			return fmt.Sprintf("seen %d times", referee.Seen(d.Name))
		})
	}
}

// player plays one random sequence.
type player struct {
	scripts
	rt      *rapid.T
	ours    oracle.Ours
	referee *oracle.Referee
	last    *oracle.Step // the release before, for as long as its latch is there
	taken   *oracle.Step // the acquire before, whose owner probably holds its lock
	n       int
}

var (
	playNames  = []string{"plain", "{tag}x", "a{b", "замок"}
	playOwners = []string{
		"11111111-1111-1111-1111-111111111111:1",
		"11111111-1111-1111-1111-111111111111:-9223372036854775808",
		"01900000-0000-7000-8000-000000000002:7",
	}
	// None so short that a key expires between the two runs.
	playLeases = []int64{20000, 30000, 90000, 3600000}
)

// play returns the first difference that nothing explains.
func (p *player) play() error {
	if err := p.twin.Reset(); err != nil {
		return err
	}
	moves := []func() error{p.acquire, p.acquire, p.release, p.release, p.late, p.repeat, p.force, p.renew, p.disturb}
	for range rapid.IntRange(10, 50).Draw(p.rt, "length") {
		if err := rapid.SampledFrom(moves).Draw(p.rt, "move")(); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) name() string  { return rapid.SampledFrom(playNames).Draw(p.rt, "name") }
func (p *player) owner() string { return rapid.SampledFrom(playOwners).Draw(p.rt, "owner") }
func (p *player) lease() int64  { return rapid.SampledFrom(playLeases).Draw(p.rt, "lease") }

func (p *player) step(s oracle.Step) error {
	outcome, err := p.twin.Play(p.theirs, p.ours, s)
	if err != nil {
		return err
	}
	return p.referee.Judge(outcome)
}

// forget deletes the latch of the last release, as the client does that has its
// reply.
func (p *player) forget() error {
	if p.last == nil {
		return nil
	}
	_, err := p.twin.Do("DEL", codec.LatchKey(p.last.Names[0], p.last.RequestID))
	p.last = nil
	return err
}

func (p *player) acquire() error {
	if err := p.forget(); err != nil {
		return err
	}
	s := oracle.Step{Op: oracle.Acquire, Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease()}
	switch rapid.IntRange(0, 9).Draw(p.rt, "how") {
	case 0:
		s.Lease = 0 // deletes the key again
	case 1, 2, 3, 4:
		p.again(&s) // enters again, in all likelihood
	}
	p.taken = &s
	return p.step(s)
}

// again makes a step be about the lock and owner of the last acquire.
func (p *player) again(s *oracle.Step) {
	if p.taken != nil {
		s.Names, s.Owner = p.taken.Names, p.taken.Owner
	}
}

// release aims at one less than the count there is, as a hold does that is given
// back in the ordinary course.
func (p *player) release() error {
	if err := p.forget(); err != nil {
		return err
	}
	s := p.newRelease()
	count, err := p.twin.Do("HGET", s.Names[0], s.Owner)
	if err != nil {
		return err
	}
	if text, ok := count.(string); ok {
		n, err := parseCount(text)
		if err != nil {
			return err
		}
		s.Target = n - 1
	}
	return p.releaseAs(s)
}

// late aims anywhere, as a release does that was held up on its way.
func (p *player) late() error {
	if err := p.forget(); err != nil {
		return err
	}
	s := p.newRelease()
	s.Target = rapid.Int64Range(0, 3).Draw(p.rt, "target")
	return p.releaseAs(s)
}

// repeat sends the release before again.
func (p *player) repeat() error {
	if p.last == nil {
		return p.release()
	}
	s := *p.last
	s.Repeat = true
	return p.step(s)
}

func (p *player) newRelease() oracle.Step {
	p.n++
	s := oracle.Step{
		Op: oracle.Free, Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease(),
		RequestID: fmt.Sprintf("%032x", p.n),
	}
	if rapid.IntRange(0, 3).Draw(p.rt, "whose") > 0 {
		p.again(&s)
	}
	return s
}

func (p *player) releaseAs(s oracle.Step) error {
	p.last = &s
	return p.step(s)
}

func (p *player) force() error {
	if err := p.forget(); err != nil {
		return err
	}
	return p.step(oracle.Step{Op: oracle.Force, Names: []string{p.name()}})
}

// renew renews several locks for one owner, held or not.
func (p *player) renew() error {
	if err := p.forget(); err != nil {
		return err
	}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(playNames), 1, len(playNames), rapid.ID[string]).Draw(p.rt, "names")
	return p.step(oracle.Step{Op: oracle.Renew, Names: names, Owner: p.owner(), Lease: p.lease()})
}

// disturb changes a key as others may: it expires, loses its time to live, is
// overwritten, or has a field of somebody else's.
func (p *player) disturb() error {
	name := p.name()
	past := time.Now().Add(-time.Second).UnixMilli()
	commands := [][]any{
		{"PEXPIREAT", name, past},
		{"PERSIST", name},
		{"SET", name, "no lock"},
		{"RPUSH", name, "no lock"},
		{"HSET", name, p.owner(), rapid.IntRange(1, 11).Draw(p.rt, "count")},
		{"DEL", name},
	}
	c := rapid.SampledFrom(commands).Draw(p.rt, "command")
	command, _ := c[0].(string)
	_, err := p.twin.Do(command, c[1:]...)
	return err
}

func parseCount(text string) (int64, error) {
	var n int64
	_, err := fmt.Sscan(text, &n)
	return n, err
}

// mutants are our scripts with one thing changed, each of which must be noticed.
var mutants = []struct {
	does     string
	script   *transport.Script
	old, new string
}{
	{"acquire forgets the lease on entering again", luasrc.Acquire, "redis.call('PEXPIRE', lock, ARGV[1])",
		"if redis.call('PTTL', lock) < 0 then redis.call('PEXPIRE', lock, ARGV[1]) end"},
	{"acquire answers 0", luasrc.Acquire, "return nil", "return 0"},
	{"acquire answers seconds", luasrc.Acquire, "redis.call('PTTL', lock)", "redis.call('TTL', lock)"},
	{"release deletes the field only", luasrc.Release, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{"release sends no message", luasrc.Release, "redis.call(ARGV[4], KEYS[2], ARGV[5])", ""},
	{"release sends another message", luasrc.Release, "KEYS[2], ARGV[5]", "KEYS[2], '1'"},
	{"release keeps the time to live", luasrc.Release, "redis.call('PEXPIRE', lock, ARGV[3])", ""},
	{"release answers 1 to a stranger", luasrc.Release, "return nil", "return 1"},
	{"force release tells nobody", luasrc.ForceRelease, "redis.call(ARGV[1], KEYS[2], ARGV[2])", ""},
	{"force release answers 1 for a free lock", luasrc.ForceRelease, "return 0", "return 1"},
	{"renewal makes strangers' locks longer", luasrc.Renew, "held == 1", "redis.call('EXISTS', KEYS[i]) == 1"},
	{"renewal does nothing", luasrc.Renew, "redis.call('PEXPIRE', KEYS[i], lease)", ""},
}

func (s scripts) testMutants(t *testing.T) {
	for _, m := range mutants {
		text := strings.Replace(m.script.Text(), m.old, m.new, 1)
		require.NotEqual(t, m.script.Text(), text, m.does)
		require.True(t, s.notices(oracle.Ours{Instead: map[*transport.Script]string{m.script: text}}), m.does)
	}
}

// notices plays sequences until a difference is found.
func (s scripts) notices(ours oracle.Ours) bool {
	sequences := rapid.Custom(func(rt *rapid.T) bool {
		p := &player{rt: rt, scripts: s, ours: ours, referee: oracle.NewReferee(s.release, oracle.Diverges)}
		return p.play() != nil
	})
	for seed := range 200 {
		if sequences.Example(seed) {
			return true
		}
	}
	return false
}
