package board

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/rsemaphore"
)

// number looks at a name that may hold a number, and reports whether it does.
func (w *watcher) number(ctx context.Context) bool {
	found, err := listing.NumberAt(ctx, w.conn, w.name)
	if err != nil || found == nil {
		return false
	}
	w.last = Lock{Name: w.name, At: time.Now(), Kind: found.Kind, TTL: found.TTL, Number: found.Number}
	if found.Number.Taken > 0 {
		if in, err := rsemaphore.NewExpirable(w.source.client, w.name).Inspect(ctx); err == nil {
			w.last.Permits = in.Permits
		}
	}
	return true
}

// whyNumber is Why for a number.
func (l *Lock) whyNumber() string {
	n := l.Number
	switch {
	case l.Kind == listing.Latch && n.Available > 0:
		return fmt.Sprintf("It is a count-down latch that is closed: %d to count down, and %s.", n.Available, waitText(n, n.LatchWaiters))
	case l.Kind == listing.Latch:
		return "It is a count-down latch that is open."
	case l.Kind == listing.Counter:
		said := fmt.Sprintf("It is a number, %d: a semaphore with so many permits, a latch with so many to count down, "+
			"or another program's. The server does not tell which.", n.Available)
		if n.Uncounted != nil {
			said += " How many wait is not known: subscribers cannot be counted."
		}
		return said
	case n.Available > 0:
		said := fmt.Sprintf("It is a semaphore with %d of its permits free: only a client that wants more has to wait", n.Available)
		if n.PermitWaiters > 0 || n.Uncounted != nil {
			said += ", and " + waitText(n, n.PermitWaiters)
		}
		return said + "." + l.permitsOver()
	}
	return "It is a semaphore without a free permit, and " + waitText(n, n.PermitWaiters) + ": until one is given back, or the lease of one is over." + l.permitsOver()
}

// permitsOver says how many permits can be had although they are taken.
func (l *Lock) permitsOver() string {
	n := 0
	for _, p := range l.Permits {
		if p.Left == 0 {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " The lease of one is over: the next client that asks gets it."
	}
	return fmt.Sprintf(" The leases of %d are over: the next clients that ask get them.", n)
}

// waitText says how many connections wait.
func waitText(of *listing.Number, n int64) string {
	switch {
	case of.Uncounted != nil:
		return "how many wait is not known, as subscribers cannot be counted"
	case n == 1:
		return "1 connection waits"
	}
	return fmt.Sprintf("%d connections wait", n)
}
