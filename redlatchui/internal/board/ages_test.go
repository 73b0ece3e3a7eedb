package board

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func at(second float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(second * float64(time.Second)))
}

func seenAt(second, left float64, owners ...string) *look {
	l := &look{at: at(second), ttl: time.Duration(left * float64(time.Second))}
	for _, owner := range owners {
		l.holders = append(l.holders, inspect.Holder{Owner: owner, Count: "1"})
	}
	return l
}

func since(a *ages, l *look) (second float64, exact bool) {
	age := a.sees("x", l)[0]
	return age.Since.Sub(at(0)).Seconds(), age.Exact
}

// sighted is a look with the age that it shows of its first holder.
type sighted struct {
	look  *look
	since float64
	exact bool
}

func TestAgesOfHolds(t *testing.T) {
	t.Parallel()
	token := func(l *look, token int64, anew bool) *look { l.token, l.anew = token, anew; return l }
	entered := seenAt(1, 30, "A")
	entered.holders[0].Count = "2"
	eternal := seenAt(0, 0, "A")
	eternal.ttl = redlatch.NoTTL
	for what, looks := range map[string][]sighted{
		"seen to begin": {
			{seenAt(0, 0), 0, false}, {seenAt(2, 30, "A"), 2, true}, {seenAt(60, 25, "A"), 2, true},
			{seenAt(61, 30, "B"), 61, true}, {seenAt(70, 30, "C"), 70, false},
		},
		"renewal":         {{seenAt(0, 20, "A"), 0, false}, {seenAt(1, 30, "A"), -10, false}, {seenAt(5, 26, "A"), -10, false}},
		"another lease":   {{seenAt(0, 5, "A"), 0, false}, {seenAt(1, 60, "A"), 0, false}},
		"entered again":   {{seenAt(0, 20, "A"), 0, false}, {entered, 0, false}},
		"no lease before": {{eternal, 0, false}, {seenAt(1, 30, "A"), 0, false}},
		"taken anew": {
			{token(seenAt(0, 30, "A"), 7, false), 0, false}, {token(seenAt(2, 30, "A"), 8, false), 2, true}, {token(seenAt(4, 30, "A"), 8, true), 4, true},
		},
		"late look": {{seenAt(0, 30, "A"), 0, false}, {seenAt(3, 0), 0, false}, {seenAt(2, 28, "A"), 2, false}, {seenAt(4, 30, "A"), 4, true}},
		"forgotten": {{seenAt(0, 30, "A"), 0, false}, {seenAt(200, 30, "A"), 0, false}, {seenAt(201+remembers.Seconds(), 30, "A"), 201 + remembers.Seconds(), false}},
	} {
		var a ages
		for i, l := range looks {
			all := a.sees("x", l.look)
			if len(l.look.holders) > 0 {
				require.InDelta(t, l.since, all[0].Since.Sub(at(0)).Seconds(), 0, "%s, look %d", what, i)
				require.Equal(t, l.exact, all[0].Exact, "%s, look %d", what, i)
			}
		}
	}
}

func TestAScanThatHasFoundNoLockShowsWhenItWasTaken(t *testing.T) {
	t.Parallel()
	var a ages
	_, exact := since(&a, seenAt(0, 30, "A"))
	require.False(t, exact)
	a.ended(at(1), true)
	_, exact = since(&a, seenAt(3, 30, "A"))
	require.True(t, exact, "the scan in between has not found it")
	a = ages{}
	a.ended(at(1), false)
	_, exact = since(&a, seenAt(3, 30, "A"))
	require.False(t, exact, "the scan has not kept all locks")
}

func TestEachReaderHasAnAgeOfItsOwn(t *testing.T) {
	t.Parallel()
	var a ages
	reads := func(second float64, owners ...string) []Age {
		l := seenAt(second, 30, owners...)
		l.shared = true
		return a.sees("x", l)
	}
	reads(0, "A")
	all := reads(2, "B", "A")
	require.Equal(t, []Age{{at(2), true}, {at(0), false}}, all)
	require.Equal(t, Age{at(0), false}, oldest(all))
	all = reads(4, "B")
	require.Equal(t, []Age{{at(2), true}}, all)
}

func TestAbsenceIsForgotten(t *testing.T) {
	t.Parallel()
	var p presence
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(0)))
	require.Equal(t, Dead, p.sees("x", "A", 0, at(1)))
	require.Equal(t, Dead, p.sees("x", "A", 0, at(200)))
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(200+remembers.Seconds()+1)))
	require.Equal(t, Alive, p.sees("x", "A", 1, at(1000)))
	require.Equal(t, Unknown, p.sees("x", "A", 0, at(1001)))
}

var plainWords = Words{
	Owner: func(owner, _ string) string { return owner }, Lock: func(name string) string { return name }, Span: time.Duration.String,
}

func TestOneSentenceSaysWhyTheLockDoesNotChangeHands(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	held := []inspect.Holder{{Owner: "A"}}
	first := func(state string, deadline time.Time) Waiter {
		return Waiter{Position: 1, Owner: "B", Deadline: deadline, State: state, Client: inspect.Client{Kind: "redisson"}}
	}
	live := Waiter{Position: 2, Owner: "C", State: Alive, Client: inspect.Client{Kind: "redlatch"}}
	around := []Step{{Lock: "x", Waiter: "B", Holder: "A"}, {Lock: "y", Waiter: "A", Holder: "B"}}
	for want, l := range map[string]Lock{
		"It is free, and no client is queued for it.":                                                                            {},
		"A holds it without a lease: it stays until it is released, also when the client is gone.":                               {Holders: held, TTL: redlatch.NoTTL},
		"A holds it. The lease is renewed, so the client is alive: it moves when it is released.":                                {Holders: held, TTL: 1, Renewed: inspect.RenewedYes},
		"A holds it. The lease was not renewed when due: it is a fixed one, or the client is gone. It ends in 2s at the latest.": {Holders: held, TTL: 2 * time.Second, Renewed: inspect.RenewedNo},
		"A and another hold it. Whether the lease is renewed is not known yet; unless it is, it ends in 2s.": {
			Holders: []inspect.Holder{{Owner: "A"}, {Owner: "D"}}, TTL: 2 * time.Second, Renewed: inspect.RenewedUnknown},
		"A holds it. Whether the lease is renewed is not known yet; unless it is, it ends in 2s.":                                                         {Holders: held, TTL: 2 * time.Second, Renewed: inspect.RenewedUnknown},
		"It is free. The first in the queue, B, has no subscriber: it is dead, and blocks the lock for 5s more. The command redlatch evict takes it out.": {Queue: []Waiter{first(Dead, at.Add(5*time.Second))}},
		"It is free. The first in the queue, B, has no subscriber: it is dead, and blocks the lock for 5s more. The Redlatch client at place 2 evicts it before that.": {
			Queue: []Waiter{first(Dead, at.Add(5*time.Second)), live}},
		"It is free. The first in the queue, B, has no subscriber and no deadline: it is dead, and blocks the lock until it is evicted. The command redlatch evict takes it out.": {
			Queue: []Waiter{first(Dead, time.Time{})}},
		"It is free. The first in the queue, B, has passed its deadline: the next request for the lock removes it.": {Queue: []Waiter{first(Dead, at)}},
		"It is free. The first in the queue, B, is alive: it comes when it is woken, or with its next poll.":        {Queue: []Waiter{first(Alive, at.Add(1))}},
		"It is free. Whether the first in the queue, B, is alive is not known yet.":                                 {Queue: []Waiter{first(Unknown, at.Add(1))}},
		"It is free. Whether the first in the queue, B, is alive is not known: subscribers cannot be counted.":      {Queue: []Waiter{first(Unknown, at.Add(1))}, Uncounted: "no right"},
		"A holds it. The lease is renewed, so the client is alive: it moves when it is released. " +
			"The first in the queue, B, is dead, and blocks it then until its deadline, in 5s. The command redlatch evict takes it out.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Queue: []Waiter{first(Dead, at.Add(5*time.Second))}},
		"A holds it without a lease: it stays until it is released, also when the client is gone. " +
			"The first in the queue, B, is dead, and blocks it then until it is evicted. The Redlatch client at place 2 evicts it before that.": {
			Holders: held, TTL: redlatch.NoTTL, Queue: []Waiter{first(Dead, time.Time{}), live}},
		"A holds it without a lease: it stays until it is released, also when the client is gone. " +
			"The first in the queue, B, is dead, and past its deadline: it blocks nothing.": {
			Holders: held, TTL: redlatch.NoTTL, Queue: []Waiter{first(Dead, at)}},
		"A holds it without a lease: it stays until it is released, also when the client is gone. 3 wait for this name as for a plain lock, which is another lock.": {
			Holders: held, TTL: redlatch.NoTTL, Kind: inspect.ReadWrite, PlainWaiters: 3},
		"A holds it. The lease is renewed, so the client is alive: it moves when it is released. It is in a circle of waits: " +
			"B waits for x, which A holds; A waits for y, which B holds. The circle ends when one of them gives up its wait, or a lease is over.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Circles: []Circle{{Sure: true, Steps: around}}},
		"A holds it. The lease is renewed, so the client is alive: it moves when it is released. Clients wait for each other's locks: " +
			"B waits for x, which A holds; A waits for y, which B holds. That is a circle of waits only if in each client the same thread or goroutine holds and waits.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Circles: []Circle{{Steps: around}}},
		"A holds it without a lease: it stays until it is released, also when the client is gone. " +
			"The first in the queue, B, is dead, and blocks it then until it is evicted. The 2 behind it are dead, too. The command redlatch evict takes it out.": {
			Holders: held, TTL: redlatch.NoTTL, Queue: []Waiter{first(Dead, time.Time{}), first(Dead, time.Time{}), first(Dead, time.Time{}), first(Alive, time.Time{}), first(Dead, time.Time{})}},
		"It is a semaphore with 2 of its permits free: only a client that wants more has to wait.": {Kind: inspect.Semaphore, Number: &inspect.Number{Available: 2, Taken: 1}},
		"It is a semaphore with 2 of its permits free: only a client that wants more has to wait, and 3 connections wait.": {
			Kind: inspect.Semaphore, Number: &inspect.Number{Available: 2, Taken: 1, PermitWaiters: 3}},
		"It is a semaphore without a free permit, and 1 connection waits: until one is given back, or the lease of one is over. " +
			"The lease of one is over: the next client that asks gets it.": {
			Kind: inspect.Semaphore, Number: &inspect.Number{Taken: 2, PermitWaiters: 1}, Holders: []inspect.Holder{{LeftMillis: new(int64)}, {}}},
		"It is a count-down latch that is closed: 2 to count down, and how many wait is not known, as subscribers cannot be counted.": {
			Kind: inspect.Latch, Number: &inspect.Number{Available: 2, Uncounted: redlatch.ErrClosed}},
		"A and another hold it. The lease, which they share, is renewed, so one of them at least is alive: it moves when all have released it. " +
			"The own lease of one of them is over: it does not keep the lock. The queue is that of a fair lock of this name, which is another lock: 1 wait for that.": {
			Holders: []inspect.Holder{{Owner: "A"}, {Owner: "D", LeftMillis: new(int64)}}, TTL: 1, Renewed: inspect.RenewedYes,
			Kind: inspect.ReadWrite, Queue: []Waiter{first(Dead, at.Add(5*time.Second))}},
		"A holds it. The lease is renewed, so the client is alive: it moves when it is released. A itself waits for y, which B holds.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Ahead: around[1:]},
	} {
		l.At, l.Waiting = at, len(l.Queue)
		require.Equal(t, want, l.Why(plainWords))
	}
	require.Empty(t, (&Lock{}).Why(plainWords), "not seen yet")
}
