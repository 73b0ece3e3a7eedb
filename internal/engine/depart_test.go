package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// placed is a doubt about somebody who may stand in a queue.
func placed(a *Attempt) *Doubt {
	d := doubtAbout(a)
	d.GiveUp = func(c *transport.Call) { c.Command = "GIVEUP" }
	return d
}

// names returns what was sent, in order.
func (f *fake) names() []string {
	var all []string
	for _, c := range f.sent() {
		all = append(all, c.name)
	}
	return all
}

func TestDepartureIsOneCallThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		over := false
		d := placed(nil)
		d.Done = func() { over = true }
		e.Depart(d)
		require.Equal(t, []string{"GIVEUP"}, f.names())
		require.EqualValues(t, 1, e.ghosts.n.Load(), "Close does")
		require.False(t, over)
		f.last(t).ends(nil, nil)
		require.Zero(t, e.ghosts.n.Load())
		require.True(t, over)
		time.Sleep(testLease)
		require.Len(t, f.sent(), 1)
	})
}

func TestDepartureThatFailsIsTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"not sent": errNotSent, "reply lost": errBroken,
		"loading": &transport.ServerError{Text: "LOADING Redis is loading the dataset in memory"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				began := time.Now()
				f.answer = func(*sentCall) (any, error, bool) {
					if time.Since(began) < 10*time.Second {
						return nil, err, true
					}
					return nil, nil, true
				}
				e, _ := engineOver(t, f)
				d := placed(nil)
				d.Release = nil
				over := time.Duration(0)
				d.Done = func() { over = time.Since(began) }
				e.Depart(d)
				e.work.Wait()
				require.Zero(t, e.ghosts.n.Load())
				require.InDelta(t, 10, over.Seconds(), askLater.Seconds()*1.2)
				for _, name := range f.names() {
					require.Equal(t, "GIVEUP", name)
				}
			})
		})
	}
}

func TestCloseWaitsForDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e, _ := engineOver(t, f)
		e.Depart(placed(nil))
		began := time.Now()
		time.AfterFunc(testCommand/2, func() { f.last(t).ends(nil, nil) })
		require.NoError(t, e.Close())
		require.Equal(t, testCommand/2, time.Since(began))
	})
}

func TestDepartureFromAClosedEngineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &fake{})
		require.NoError(t, e.Close())
		over := false
		d := placed(nil)
		d.Done = func() { over = true }
		e.Depart(d)
		require.True(t, over)
		require.Zero(t, e.ghosts.n.Load())
	})
}

// A ghost may get the lock or a place. Both are asked about, in this order: what
// is freed goes to the next, who is not to be the ghost.
func TestDoubtAboutAPlaceGivesItUpAsOftenAsItReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: answering(nil, nil)}
		e, _ := engineOver(t, f)
		e.Settle(placed(doubtful(e, 0)))
		e.work.Wait()
		names := f.names()
		require.Greater(t, len(names), 40)
		for i, name := range names {
			require.Equal(t, []string{"RELEASE", "GIVEUP"}[i%2], name)
		}
	})
}

func TestDoubtAboutAPlaceAloneFreesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fencing{fake: &fake{answer: answering(nil, nil)}}
		f.fence = func(context.Context) error { return nil }
		e, log := engineOver(t, f)
		d := placed(doubtful(e, 7))
		d.Release = nil
		e.Settle(d)
		e.work.Wait()
		require.Equal(t, []string{"GIVEUP"}, f.names())
		require.Contains(t, log.String(), "was_held=false")
	})
}

// The lock was freed, and the place could not be given up yet.
func TestDoubtGoesOnUntilThePlaceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		refusals := 3
		f.answer = func(c *sentCall) (any, error, bool) {
			if c.name == "RELEASE" {
				return int64(1), nil, true
			}
			if refusals--; refusals >= 0 {
				return nil, errNotSent, true
			}
			return nil, nil, true
		}
		e, log := engineOver(t, f)
		e.Settle(placed(nil))
		e.work.Wait()
		require.Len(t, f.names(), 8)
		require.Contains(t, log.String(), "settled")
	})
}
