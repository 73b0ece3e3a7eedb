package compat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// gamesOf are those of the kinds that a release has.
func gamesOf(r oracle.Release) []game {
	return slices.DeleteFunc(slices.Clone(games), func(g game) bool { return !g.kind.In(r) })
}

// player plays one random sequence.
type player struct {
	scripts
	rt      *rapid.T
	ours    oracle.Ours
	referee *oracle.Referee
}

// step returns the first difference that nothing explains.
func (p *player) step(s oracle.Step) error {
	outcome, err := p.twin.Play(p.theirs, p.ours, s)
	if err != nil {
		return err
	}
	return p.referee.Judge(outcome)
}

// prepare runs commands on Redisson's side, to bring about a state.
func (p *player) prepare(commands [][]any) error {
	for _, c := range commands {
		command, _ := c[0].(string)
		if _, err := p.twin.Do(command, c[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func (s scripts) play(rt *rapid.T, g game, referee *oracle.Referee, ours oracle.Ours) error {
	if err := s.twin.Reset(); err != nil {
		return err
	}
	p := &player{s, rt, ours, referee}
	if g.enters == nil {
		return playObject(p, g)
	}
	return playLock(p, g)
}

// testSteps plays random steps on both sides, in each of our ways.
func (s scripts) testSteps(t *testing.T) {
	for _, g := range gamesOf(s.release) {
		for _, way := range oracle.Ways {
			t.Run(g.kind.Name+", "+way.Name, func(t *testing.T) {
				referee := oracle.NewReferee(s.release, way.Ours, g.kind)
				var first error
				defer func() {
					if first != nil { // after all that is printed of the attempt: it may not be found again
						t.Log("the first difference:", first)
					}
				}()
				rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
					err := s.play(rt, g, referee, way.Ours)
					if first == nil {
						first = err
					}
					require.NoError(rt, err)
				})
				require.Empty(t, referee.Unseen(), "listed differences that did not occur")
				s.noteSteps(t, g.kind, way, referee)
			})
		}
	}
}

// noteSteps writes a line of the table, if each operation was played.
func (s scripts) noteSteps(t *testing.T, kind *oracle.Kind, way oracle.Way, referee *oracle.Referee) {
	t.Helper()
	sum := 0
	for _, op := range kind.OperationsOf(s.release) {
		steps := referee.Steps(op)
		require.True(t, steps > 0 || op.Ours == nil, "no steps of %s", op)
		sum += steps
	}
	s.note(t, kind.Name+", "+way.Name, fmt.Sprintf("same, %d steps", sum))
}
