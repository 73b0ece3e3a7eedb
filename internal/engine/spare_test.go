package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// stubSub is a subscription to nothing.
type stubSub struct {
	events chan transport.Event
	closed atomic.Int64
}

func (s *stubSub) Events() <-chan transport.Event { return s.events }
func (s *stubSub) Err() error                     { return nil }
func (s *stubSub) Close()                         { s.closed.Add(1) }

func newSpare(n int64) (*Spare, *stubSub) {
	sub := &stubSub{events: make(chan transport.Event, 1)}
	owner := codec.NewOwner(uuid.UUID{}, n)
	return &Spare{Owner: owner, Text: owner.String(), Sub: sub}, sub
}

// keptSpares has an engine keep so many spares of one lock, which have all waited.
func keptSpares(e *Engine, n int) (all []*Spare, subs []*stubSub) {
	for i := range n {
		s, sub := newSpare(int64(i))
		e.Linger("fair", "lock", s, true)
		all, subs = append(all, s), append(subs, sub)
	}
	return all, subs
}

// had returns the spare that the next acquisition gets.
func had(e *Engine) *Spare {
	s, _ := e.Spare("fair", "lock")
	return s
}

func contended(e *Engine) bool {
	_, yes := e.Spare("fair", "lock")
	return yes
}

func closes(subs []*stubSub) string {
	text := ""
	for _, s := range subs {
		text += fmt.Sprint(s.closed.Load())
	}
	return text
}

func TestSpareIsHadOnceItIsOfferedAndOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRooms()
		all, subs := keptSpares(e, 3)
		require.Nil(t, had(e), "their holds last")
		e.Offer(all[0])
		e.Offer(all[2])
		e.Offer(all[2])
		other, _ := e.Spare("fair", "other")
		require.Nil(t, other)
		other, _ = e.Spare("plain", "lock")
		require.Nil(t, other)
		require.Same(t, all[2], had(e), "the latest first")
		require.Same(t, all[0], had(e))
		require.Nil(t, had(e))
		e.End(all[1])
		e.End(all[1])
		e.Offer(all[1])
		require.Nil(t, had(e))
		require.Equal(t, "010", closes(subs), "whoever has one closes it")
	})
}

func TestSpareEndsWhenItsSecondIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRooms()
		all, subs := keptSpares(e, 3)
		e.Offer(all[0])
		time.Sleep(900 * time.Millisecond)
		require.Equal(t, "000", closes(subs))
		require.Same(t, all[0], had(e))
		e.Linger("fair", "lock", all[0], false)
		e.End(all[2])
		require.Equal(t, "001", closes(subs))
		time.Sleep(700 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "111", closes(subs), "one that did not have to wait gets no further second")
		e.Offer(all[1])
		require.Nil(t, had(e))
		e.Linger("fair", "lock", all[0], false)
		require.Equal(t, int64(2), subs[0].closed.Load(), "it comes too late")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, e.spares.lots)
		require.Nil(t, e.spares.timer)
	})
}

func TestSpareThatWaitsAgainHasAnotherSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRooms()
		all, subs := keptSpares(e, 1)
		for range 10 {
			e.Offer(all[0])
			time.Sleep(900 * time.Millisecond)
			require.Same(t, all[0], had(e))
			e.Linger("fair", "lock", all[0], true)
		}
		require.Equal(t, "0", closes(subs))
		e.spares.close()
	})
}

func TestSpareThatFailedIsNotHadAndAnOldMessageIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRooms()
		all, subs := keptSpares(e, 2)
		subs[0].events <- transport.Event{Payload: "0"}
		close(subs[1].events)
		e.Offer(all[0])
		e.Offer(all[1])
		require.Same(t, all[0], had(e))
		require.Empty(t, subs[0].events)
		e.spares.close()
	})
}

func TestLockIsContendedWhileSomebodySitsAndForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRooms()
		require.False(t, contended(e))
		s := seats(e, "a", "b")
		time.Sleep(2 * time.Second)
		require.True(t, contended(e))
		require.Nil(t, e.spares.timer, "there is nothing to do meanwhile")
		s[0].Leave()
		time.Sleep(2 * time.Second)
		require.True(t, contended(e))
		s[1].Leave()
		time.Sleep(900 * time.Millisecond)
		require.True(t, contended(e))
		time.Sleep(200 * time.Millisecond)
		require.False(t, contended(e))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, e.spares.lots)
		require.Nil(t, e.spares.timer)
	})
}

func TestClosedClientKeepsNoSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRooms()
		all, subs := keptSpares(e, 3)
		e.Offer(all[0])
		require.Same(t, all[0], had(e))
		e.Offer(all[1])
		e.spares.close()
		require.Equal(t, "011", closes(subs))
		e.Linger("fair", "lock", all[0], true)
		e.Offer(all[2])
		require.Equal(t, "111", closes(subs))
		require.Nil(t, had(e))
	})
}

// Whatever the order of things, each spare has one user at a time, and each
// subscription is closed once in the end.
func TestSparesHaveOneUserAtATime(t *testing.T) {
	e := newRooms()
	const workers, rounds = 8, 2000
	var made atomic.Int64
	var mu sync.Mutex
	var subs []*stubSub
	users := map[*Spare]int{}
	use := func(s *Spare, n int) {
		mu.Lock()
		defer mu.Unlock()
		if users[s] += n; users[s] > 1 {
			t.Error("a spare has two users")
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range rounds {
				s := had(e)
				if s == nil {
					var sub *stubSub
					s, sub = newSpare(made.Add(1))
					mu.Lock()
					subs = append(subs, sub)
					mu.Unlock()
				}
				use(s, 1)
				if i%7 == 0 {
					use(s, -1)
					s.Sub.Close() // it gave up
					continue
				}
				e.Linger("fair", "lock", s, true)
				use(s, -1)
				if i%5 == 0 {
					e.End(s)
				} else {
					e.Offer(s)
				}
			}
		})
	}
	wg.Wait()
	e.spares.close()
	for _, sub := range subs {
		require.Equal(t, int64(1), sub.closed.Load())
	}
}
