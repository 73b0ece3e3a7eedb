package compat

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// goSide is a client of ours in this process, as a member that takes one lock in one role.
type goSide struct {
	role   *rlock.Lock
	waiter goWaiter
	hold   *rlock.Hold
}

func (g *goSide) lock(t *testing.T) {
	t.Helper()
	g.waiter = lockLater(t, g.role)
}

func (g *goSide) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	got := g.waiter.await(t, by)
	g.hold = got.hold
	return got.at
}

func (g *goSide) unlock(t *testing.T) {
	t.Helper()
	require.NoError(t, g.hold.Unlock())
}

func (g *goSide) kill(t *testing.T) { t.Helper(); require.FailNow(t, "it lives in this process") }

// rwParks is for Java's waiters: the message of a writer wakes those that are parked already, and
// one that is about to sleeps for what its refusal said.
const rwParks = 300 * time.Millisecond

// rwRounds is how often each direction is measured.
const rwRounds = 20

// testReadWriteWakeUp measures how long after a release the waiter of the other language has
// the lock, in each pair of roles that exclude each other.
func (c *compat) testReadWriteWakeUp(t *testing.T) {
	o := observe(t)
	j, client := connect(t, c.peer, o.server, nil), open(t, o.server)
	for _, roles := range [][2]string{{"write", "read"}, {"write", "write"}, {"read", "write"}} {
		name := redistest.Key(t)
		lock := rreadwritelock.New(client, name)
		sides := func(role string) (ours, theirs member) {
			l := lock.Read()
			if role == "write" {
				l = lock.Write()
			}
			return &goSide{role: l}, &javaMember{java: j, kind: peer.Command{"kind": role}, name: name}
		}
		ours, theirs := sides(roles[0])
		oursNext, theirsNext := sides(roles[1])
		for _, d := range []struct {
			does        string
			frees, gets member
			parks       time.Duration
		}{
			{fmt.Sprintf("Go's %s wakes Java's %s", roles[0], roles[1]), ours, theirsNext, rwParks},
			{fmt.Sprintf("Java's %s wakes Go's %s", roles[0], roles[1]), theirs, oursNext, 0},
		} {
			t.Run(d.does, func(t *testing.T) {
				var p50, most time.Duration
				c.table.note(t, c.release.String(), d.does+", ms", func() string {
					return fmt.Sprintf("p50 %s max %s", ms(p50), ms(most))
				})
				var all []time.Duration
				for range rwRounds {
					awaitListenersOn(t, o.server, codec.ReadWriteChannel(name), 0)
					all = append(all, o.wakes(t, name, d.frees, d.gets, d.parks))
				}
				slices.Sort(all)
				p50, most = all[len(all)/2], all[len(all)-1]
				require.Less(t, most, wakeBound)
			})
		}
	}
}

// wakes has one member free the lock that the other waits for, when that had time to park, and
// returns how long that took.
func (o observed) wakes(t *testing.T, name string, frees, gets member, parks time.Duration) time.Duration {
	t.Helper()
	frees.lock(t)
	frees.locked(t, atMost)
	o.about(t, name)
	gets.lock(t)
	o.parked(t, name)
	time.Sleep(parks)
	released := time.Now()
	frees.unlock(t)
	took := gets.locked(t, atMost).Sub(released)
	gets.unlock(t)
	return took
}
