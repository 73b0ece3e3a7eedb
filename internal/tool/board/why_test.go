package board_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestOneSentenceExplainsStuckLock(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	held := []inspect.Holder{{Owner: "A"}}
	first := func(state string, deadline time.Time) board.Waiter {
		return board.Waiter{Position: 1, Owner: "B", Deadline: deadline, State: state, Client: inspect.Client{Kind: "redisson"}}
	}
	live := board.Waiter{Position: 2, Owner: "C", State: board.Alive, Client: inspect.Client{Kind: "redlatch"}}
	around := inspect.Circle{{Lock: "x", Waiter: "B", Holder: "A"}, {Lock: "y", Waiter: "A", Holder: "B"}}
	for want, l := range map[string]board.Lock{
		"calm: It is free, and no client is queued.":                                                                                {},
		"warn: A holds it without a lease: it is held until released, even if the client is gone.":                                  {Holders: held, TTL: redlatch.NoTTL},
		"fine: A holds it. The lease is renewed, so the client is alive: waiters proceed when it is released.":                      {Holders: held, TTL: 1, Renewed: inspect.RenewedYes},
		"warn: A holds it. The lease was not renewed when due: it is fixed, or the client is gone. It ends in 2.0 s at the latest.": {Holders: held, TTL: 2 * time.Second, Renewed: inspect.RenewedNo},
		"calm: A and another client hold it. It is not yet known whether the lease is renewed; otherwise it ends in 2.0 s.": {
			Holders: []inspect.Holder{{Owner: "A"}, {Owner: "D"}}, TTL: 2 * time.Second, Renewed: inspect.RenewedUnknown},
		"calm: A holds it. It is not yet known whether the lease is renewed; otherwise it ends in 2.0 s.":                                                       {Holders: held, TTL: 2 * time.Second, Renewed: inspect.RenewedUnknown},
		"bad: It is free. The first in the queue, B, has no subscriber: it is dead, and blocks the lock for 5.0 s more. The command redlatch evict removes it.": {Queue: []board.Waiter{first(board.Dead, at.Add(5*time.Second))}},
		"bad: It is free. The first in the queue, B, has no subscriber: it is dead, and blocks the lock for 5.0 s more. The Redlatch client at place 2 evicts it before that.": {
			Queue: []board.Waiter{first(board.Dead, at.Add(5*time.Second)), live}},
		"bad: It is free. The first in the queue, B, has no subscriber and no deadline: it is dead, and blocks the lock until it is evicted. The command redlatch evict removes it.": {
			Queue: []board.Waiter{first(board.Dead, time.Time{})}},
		"warn: It is free. The first in the queue, B, is past its deadline: the next request for the lock removes it.":    {Queue: []board.Waiter{first(board.Dead, at)}},
		"calm: It is free. The first in the queue, B, is alive: it acquires the lock when notified, or at its next poll.": {Queue: []board.Waiter{first(board.Alive, at.Add(1))}},
		"calm: It is free. It is not yet known whether the first in the queue, B, is alive.":                              {Queue: []board.Waiter{first(board.Unknown, at.Add(1))}},
		"warn: It is free. It is not known whether the first in the queue, B, is alive: subscribers cannot be counted.":   {Queue: []board.Waiter{first(board.Unknown, at.Add(1))}, Uncounted: "no right"},
		"bad: A holds it. The lease is renewed, so the client is alive. " +
			"The first in the queue, B, is dead and will block the queue until its deadline, in 5.0 s. The command redlatch evict removes it.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Queue: []board.Waiter{first(board.Dead, at.Add(5*time.Second))}},
		"bad: A holds it without a lease: it is held until released, even if the client is gone. " +
			"The first in the queue, B, is dead and will block the queue until it is evicted. The Redlatch client at place 2 evicts it before that.": {
			Holders: held, TTL: redlatch.NoTTL, Queue: []board.Waiter{first(board.Dead, time.Time{}), live}},
		"warn: A holds it without a lease: it is held until released, even if the client is gone. " +
			"The first in the queue, B, is dead and past its deadline: it blocks nothing.": {
			Holders: held, TTL: redlatch.NoTTL, Queue: []board.Waiter{first(board.Dead, at)}},
		"warn: A holds it without a lease: it is held until released, even if the client is gone. 3 clients wait for this name as a plain lock, which is another lock.": {
			Holders: held, TTL: redlatch.NoTTL, Kind: inspect.ReadWrite, PlainWaiters: 3},
		"bad: A holds it. The lease is renewed, so the client is alive. It is in a deadlock: " +
			"B waits for x, which A holds; A waits for y, which B holds. The deadlock ends when a client stops waiting or a lease expires.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Circles: []inspect.Circle{around}},
		"bad: A holds it without a lease: it is held until released, even if the client is gone. " +
			"The first in the queue, B, is dead and will block the queue until it is evicted. The next 2 waiters are also dead. The command redlatch evict removes it.": {
			Holders: held, TTL: redlatch.NoTTL, Queue: []board.Waiter{first(board.Dead, time.Time{}), first(board.Dead, time.Time{}), first(board.Dead, time.Time{}), first(board.Alive, time.Time{}), first(board.Dead, time.Time{})}},
		"calm: It is a semaphore with 2 free permits: only clients that request more have to wait.": {Kind: inspect.Semaphore, Number: &inspect.Number{Available: 2, Taken: 1}},
		"calm: It is a semaphore with 2 free permits: only clients that request more have to wait, and 3 connections wait.": {
			Kind: inspect.Semaphore, Number: &inspect.Number{Available: 2, Taken: 1, PermitWaiters: 3}},
		"calm: It is a semaphore without a free permit, and 1 connection waits: until a permit is released or its lease expires. " +
			"The lease of one has expired: the next request gets it.": {
			Kind: inspect.Semaphore, Number: &inspect.Number{Taken: 2, PermitWaiters: 1}, Holders: []inspect.Holder{{LeftMillis: new(int64)}, {}}},
		"calm: It is a closed count-down latch: 2 to count down, and the number of waiters is unknown because subscribers cannot be counted.": {
			Kind: inspect.Latch, Number: &inspect.Number{Available: 2, Uncounted: redlatch.ErrClosed}},
		"warn: A and another client hold it. Their shared lease is renewed, so at least one of them is alive: waiters proceed when all have released it. " +
			"The lease of one holder has expired: it no longer keeps the lock. The queue belongs to a fair lock of this name, which is another lock: 1 client waits for it.": {
			Holders: []inspect.Holder{{Owner: "A"}, {Owner: "D", LeftMillis: new(int64)}}, TTL: 1, Renewed: inspect.RenewedYes,
			Kind: inspect.ReadWrite, Queue: []board.Waiter{first(board.Dead, at.Add(5*time.Second))}},
		"fine: A holds it. The lease is renewed, so the client is alive: waiters proceed when it is released. A itself waits for y, which B holds.": {
			Holders: held, TTL: 1, Renewed: inspect.RenewedYes, Ahead: around[1:]},
	} {
		l.At, l.Waiting = at, len(l.Queue)
		require.Equal(t, want, l.Verdict().String()+": "+l.Why())
	}
	require.Empty(t, (&board.Lock{}).Why(), "not seen yet")
}
