package engine

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/protocol"
)

// newRooms is an engine as far as rooms need one.
func newRooms() *Engine { return &Engine{} }

// sit has an owner take a seat.
func sit(e *Engine, kind, key, owner string) *Seat {
	return e.Room(key, &queueKind{kind: kind, key: key}, protocol.Waiter{Owner: owner, Wait: int64(300_000)})
}

// seats has owners take seats in one room, in this order.
func seats(e *Engine, owners ...string) []*Seat {
	var all []*Seat
	for _, owner := range owners {
		all = append(all, sit(e, "fair", "lock", owner))
	}
	return all
}

// received reports whether a seat's channel has something, and takes it.
func received(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// requireNoRoom holds that every seat was given up.
func requireNoRoom(t *testing.T, e *Engine) {
	t.Helper()
	require.Empty(t, e.rooms.byKey)
}

func TestFirstOfARoomLeads(t *testing.T) {
	e := newRooms()
	s := seats(e, "a", "b", "c")
	for i, seat := range s {
		require.True(t, seat.Leads())
		for _, later := range s[i+1:] {
			require.False(t, later.Leads())
			require.False(t, received(later.Lead))
		}
		seat.Leave()
		if i+1 < len(s) {
			require.True(t, received(s[i+1].Lead), "it is told")
		}
	}
	requireNoRoom(t, e)
}

func TestSeatThatDidNotLeadLeavesWithoutAWord(t *testing.T) {
	e := newRooms()
	s := seats(e, "a", "b", "c", "d")
	s[1].Leave()
	s[3].Leave()
	require.True(t, s[0].Leads())
	for _, seat := range s {
		require.False(t, received(seat.Lead))
	}
	s[0].Leave()
	require.True(t, s[2].Leads())
	require.True(t, received(s[2].Lead))
	s[2].Leave()
	requireNoRoom(t, e)
}

func TestWhoQueuesAnewGoesBehindTheOthers(t *testing.T) {
	e := newRooms()
	s := seats(e, "a", "b", "c")
	s[0].Back()
	require.True(t, s[1].Leads())
	require.True(t, received(s[1].Lead))
	s[2].Back() // from between the others
	require.True(t, s[1].Leads())
	require.False(t, received(s[1].Lead))
	s[1].Leave()
	require.True(t, s[0].Leads())
	s[0].Leave()
	require.True(t, s[2].Leads())
	received(s[2].Lead)
	s[2].Back() // alone
	require.True(t, s[2].Leads())
	require.False(t, received(s[2].Lead), "nothing has changed")
	s[2].Leave()
	requireNoRoom(t, e)
}

func TestRoomsAreByKindAndKey(t *testing.T) {
	e := newRooms()
	s := []*Seat{sit(e, "fair", "a", "x"), sit(e, "fair", "b", "x"), sit(e, "other", "a", "x")}
	for _, seat := range s {
		require.True(t, seat.Leads())
	}
	s[0].Tell("x")
	for _, seat := range s {
		require.False(t, received(seat.Call))
		seat.Leave()
	}
	requireNoRoom(t, e)
}

func TestTellingReachesTheOneThatIsMeantAndNobodyElse(t *testing.T) {
	e := newRooms()
	s := seats(e, "a", "b", "c")
	s[0].Tell("c")
	s[0].Tell("c") // one call is enough
	s[0].Tell("a") // itself
	s[0].Tell("of another process")
	require.True(t, received(s[2].Call))
	require.False(t, received(s[2].Call))
	require.False(t, received(s[0].Call))
	require.False(t, received(s[1].Call))

	s[2].TellFirst()
	require.True(t, received(s[0].Call))
	require.False(t, received(s[1].Call))
	s[0].TellFirst() // also when it is that one
	require.True(t, received(s[0].Call))

	s[2].Leave()
	s[0].Tell("c")
	require.False(t, received(s[2].Call), "it has left")
	s[0].Leave()
	s[1].Leave()
	requireNoRoom(t, e)
}

func TestWhoeverLeadsKnowsWhenTheFirstIsToAsk(t *testing.T) {
	e := newRooms()
	s := seats(e, "a", "b")
	require.Zero(t, s[1].Planned())
	at := time.Now().Add(time.Minute)
	s[0].Plan(at)
	s[0].Leave()
	require.Equal(t, at, s[1].Planned())
	s[1].Leave()
	requireNoRoom(t, e)
}

// Users of one owner have one place in the queue.
func TestOneOfAnOwnersSeatsIsLeftAndTheOthersAsk(t *testing.T) {
	e := newRooms()
	s := seats(e, "x", "first", "x", "y", "x")
	s[3].Leave()
	for _, seat := range s {
		require.False(t, received(seat.Call), "it is nobody else's")
	}
	for _, leaver := range []*Seat{s[4], s[0]} { // the newest, and the oldest
		leaver.Leave()
		require.False(t, received(s[1].Call))
		require.True(t, received(s[2].Call))
	}
	s[1].Tell("x")
	require.True(t, received(s[2].Call), "it is found")
	s[2].Leave()
	s[1].Tell("x")
	require.False(t, received(s[2].Call))
	s[1].Leave()
	requireNoRoom(t, e)
}

// Whatever the order of things, somebody leads as long as somebody is there, and
// whoever comes to lead was told or was there first.
func TestThereIsAlwaysOneWhoLeads(t *testing.T) {
	e := newRooms()
	const workers, rounds = 8, 2000
	anchor := sit(e, "fair", "lock", "anchor") // one room all the while
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			owner := string(rune('a' + w))
			for range rounds {
				s := sit(e, "fair", "lock", owner)
				switch rand.IntN(4) {
				case 0:
					s.Back()
				case 1:
					s.TellFirst()
				case 2:
					s.Tell("a")
				}
				s.Plan(time.Now())
				s.Leads()
				s.Leave()
			}
		})
	}
	wg.Wait()
	require.True(t, anchor.Leads())
	require.Same(t, anchor.room.first, anchor.room.last)
	require.Len(t, anchor.room.byOwner, 1)
	anchor.Leave()
	requireNoRoom(t, e)
}

func TestRoomsComeAndGoWithTheirSeats(t *testing.T) {
	e := newRooms()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				sit(e, "fair", "lock", "x").Leave()
			}
		})
	}
	wg.Wait()
	requireNoRoom(t, e)
}
