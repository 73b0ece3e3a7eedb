package board

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// Why explains why the lock is not changing hands, or returns "" if it was not seen.
func (l *Lock) Why() string { return l.Verdict().Text }

// Verdict returns Why with its level.
func (l *Lock) Verdict() Verdict { return reasons{l}.why() }

// Verdict explains the state of a lock in sentences.
type Verdict struct {
	Level
	Text string
}

// Level is the severity of a state.
type Level int

const (
	// Calm is for states that are neither good nor bad, or not yet known.
	Calm Level = iota
	// Fine is for a holder that is known to be alive.
	Fine
	// Warn is for states that may need attention.
	Warn
	// Bad is for locks that do not change hands without help.
	Bad
)

// String returns the level in lower case.
func (l Level) String() string { return [...]string{"calm", "fine", "warn", "bad"}[l] }

// LevelOf returns the level of an Entry's trouble.
func LevelOf(trouble string) Level {
	switch trouble {
	case "":
		return Calm
	case InCircle, DeadFront:
		return Bad
	}
	return Warn
}

func join(parts ...Verdict) (v Verdict) {
	for _, p := range parts {
		v.Level = max(v.Level, p.Level)
		v.Text += p.Text
	}
	return v
}

// Waits describes how many clients seem to wait outside of the queue.
func (l *Lock) Waits() string { return reasons{l}.waits() }

type reasons struct{ *Lock }

func (l reasons) why() Verdict {
	switch {
	case l.At.IsZero():
		return Verdict{}
	case l.Number != nil:
		return Verdict{Calm, l.whyNumber()}
	case !l.Held() && l.Waiting == 0:
		return Verdict{Calm, "It is free, and no client is queued."}
	case !l.Held():
		return join(l.whyUntaken(), l.mixed())
	}
	over := l.over(" The lease of one holder has expired: it no longer keeps the lock.",
		" The leases of %d holders have expired: they no longer keep the lock.")
	then := l.whyThen()
	return join(l.whyHeld(len(l.Circles) > 0 || then.Level == Bad), Verdict{Calm, over}, l.whyAround(), then, l.mixed())
}

func (l reasons) whyAround() Verdict {
	if len(l.Circles) == 0 {
		if len(l.Ahead) == 0 {
			return Verdict{}
		}
		return Verdict{Calm, " " + sentences(l.Ahead[:1], " itself") + "."}
	}
	return Verdict{Bad, " It is in a deadlock: " + sentences(l.Circles[0], "") + ". The deadlock ends when a client stops waiting or a lease expires."}
}

func sentences(steps []inspect.Step, self string) string {
	var said []string
	for i := range steps {
		s := &steps[i]
		said = append(said, fmt.Sprintf("%s%s waits for %s, which %s holds",
			OwnerText(s.Waiter, s.WaiterLabel), self, NameText(s.Lock), OwnerText(s.Holder, s.HolderLabel)))
	}
	return strings.Join(said, "; ")
}

// whyHeld promises waiters nothing if they are blocked.
func (l reasons) whyHeld(blocked bool) Verdict {
	who := OwnerText(l.Holders[0].Owner, l.Holders[0].Label)
	switch n := len(l.Holders) - 1; {
	case n > 1:
		who += fmt.Sprintf(" and %d others hold it", n)
	case n == 1:
		who += " and another client hold it"
	default:
		who += " holds it"
	}
	proceed := func(when string) string {
		if blocked {
			return "."
		}
		return ": waiters proceed when " + when + "."
	}
	switch {
	case l.TTL < 0:
		return Verdict{Warn, who + " without a lease: it is held until released, even if the client is gone."}
	case l.Renewed == inspect.RenewedYes && len(l.Holders) > 1:
		return Verdict{Fine, who + ". Their shared lease is renewed, so at least one of them is alive" + proceed("all have released it")}
	case l.Renewed == inspect.RenewedYes:
		return Verdict{Fine, who + ". The lease is renewed, so the client is alive" + proceed("it is released")}
	case l.Renewed == inspect.RenewedNo:
		return Verdict{Warn, who + ". The lease was not renewed when due: it is fixed, or the client is gone. It ends in " +
			Span(l.TTL) + " at the latest."}
	}
	return Verdict{Calm, who + ". It is not yet known whether the lease is renewed; otherwise it ends in " + Span(l.TTL) + "."}
}

func (l reasons) over(one, many string) string {
	n := 0
	for i := range l.Holders {
		if l.Holders[i].IsOver() {
			n++
		}
	}
	return countText(n, one, many)
}

func (l reasons) whyThen() Verdict {
	if len(l.Queue) == 0 || l.Queue[0].State != Dead || l.Kind == inspect.ReadWrite {
		return Verdict{}
	}
	first := &l.Queue[0]
	said := " The first in the queue, " + OwnerText(first.Owner, first.Label) + ", is dead and "
	switch left := first.Deadline.Sub(l.At); {
	case first.Deadline.IsZero():
		said += "will block the queue until it is evicted."
	case left > 0:
		said += "will block the queue until its deadline, in " + Span(left) + "."
	default:
		return Verdict{Warn, said + "past its deadline: it blocks nothing."}
	}
	return Verdict{Bad, said + l.behind() + l.evictor()}
}

func (l reasons) behind() string {
	n := slices.IndexFunc(l.Queue[1:], func(q Waiter) bool { return q.State != Dead })
	if n < 0 {
		n = len(l.Queue) - 1
	}
	return countText(n, " The next waiter is also dead.", " The next %d waiters are also dead.")
}

func countText(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return one
	}
	return fmt.Sprintf(many, n)
}

func (l reasons) whyUntaken() Verdict {
	if len(l.Queue) == 0 {
		return Verdict{Calm, "It is free, and other clients are queued."}
	}
	first := &l.Queue[0]
	who, left := " first in the queue, "+OwnerText(first.Owner, first.Label)+", ", first.Deadline.Sub(l.At)
	switch said := "It is free. The" + who; {
	case !first.Deadline.IsZero() && left <= 0:
		return Verdict{Warn, said + "is past its deadline: the next request for the lock removes it."}
	case first.State == Dead && first.Deadline.IsZero():
		return Verdict{Bad, said + "has no subscriber and no deadline: it is dead, and blocks the lock until it is evicted." + l.behind() + l.evictor()}
	case first.State == Dead:
		return Verdict{Bad, said + "has no subscriber: it is dead, and blocks the lock for " + Span(left) + " more." + l.behind() + l.evictor()}
	case first.State == Alive:
		return Verdict{Calm, said + "is alive: it acquires the lock when notified, or at its next poll."}
	case l.Uncounted != "":
		return Verdict{Warn, "It is free. It is not known whether the" + who + "is alive: subscribers cannot be counted."}
	}
	return Verdict{Calm, "It is free. It is not yet known whether the" + who + "is alive."}
}

func (l reasons) evictor() string {
	for i := range l.Queue {
		if q := &l.Queue[i]; q.Kind == "redlatch" && q.State == Alive {
			return fmt.Sprintf(" The Redlatch client at place %d evicts it before that.", q.Position)
		}
	}
	return " The command redlatch evict removes it."
}

func (l reasons) mixed() Verdict {
	switch {
	case l.ReadWriteWaiters > 0:
		return Verdict{Warn, " " + clientsWait(l.ReadWriteWaiters) + " for this name as a read/write lock, which is another lock."}
	case l.Waiting > 0 && l.Kind == inspect.ReadWrite:
		return Verdict{Warn, " The queue belongs to a fair lock of this name, which is another lock: " + clientsWait(int64(l.Waiting)) + " for it."}
	case l.PlainWaiters > 0 && l.Kind == inspect.ReadWrite:
		return Verdict{Warn, " " + clientsWait(l.PlainWaiters) + " for this name as a plain lock, which is another lock."}
	case l.PlainWaiters > 0:
		return Verdict{Warn, " " + clientsWait(l.PlainWaiters) + " for it as a plain lock, and may overtake the queue."}
	}
	return Verdict{}
}

func clientsWait(n int64) string {
	if n == 1 {
		return "1 client waits"
	}
	return fmt.Sprintf("%d clients wait", n)
}

func (l reasons) waits() string {
	const none = "No client is queued on the server"
	const hint = " This indicates how many clients wait: one connection serves all waiters of a client, and remains subscribed for a while." +
		" Waiters have no order: any of them may be next."
	switch {
	case !l.Held():
		return none + "."
	case l.Uncounted != "":
		return none + ". The number of waiters without a place in the queue, such as for a plain or read/write lock, is unknown: subscribers cannot be counted."
	case l.Listening == 0:
		return none + ", and no connection is subscribed to the lock's release: no client seems to be waiting."
	case l.Listening == 1:
		return none + ", and 1 connection is subscribed to the lock's release." + hint
	}
	return none + fmt.Sprintf(", and %d connections are subscribed to the lock's release.", l.Listening) + hint
}

func (l reasons) whyNumber() string {
	n := l.Number
	over := l.over(" The lease of one has expired: the next request gets it.",
		" The leases of %d have expired: the next requests get them.")
	switch {
	case l.Kind == inspect.Latch && n.Available > 0:
		return fmt.Sprintf("It is a closed count-down latch: %d to count down, and %s.", n.Available, waitText(n, n.LatchWaiters))
	case l.Kind == inspect.Latch:
		return "It is an open count-down latch."
	case l.Kind == inspect.Counter:
		said := fmt.Sprintf("It is the number %d: the permits of a semaphore, the count of a latch, "+
			"or data of another program. The server cannot distinguish them.", n.Available)
		if n.Uncounted != nil {
			said += " The number of waiters is unknown: subscribers cannot be counted."
		}
		return said
	case n.Available > 0:
		said := fmt.Sprintf("It is a semaphore with %d free permits: only clients that request more have to wait", n.Available)
		if n.PermitWaiters > 0 || n.Uncounted != nil {
			said += ", and " + waitText(n, n.PermitWaiters)
		}
		return said + "." + over
	}
	return "It is a semaphore without a free permit, and " + waitText(n, n.PermitWaiters) + ": until a permit is released or its lease expires." + over
}

func waitText(of *inspect.Number, n int64) string {
	switch {
	case of.Uncounted != nil:
		return "the number of waiters is unknown because subscribers cannot be counted"
	case n == 1:
		return "1 connection waits"
	}
	return fmt.Sprintf("%d connections wait", n)
}
