package status

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rsemaphore"
)

// shownPermits is how many of the permits that are taken are shown as text.
const shownPermits = 20

// What a name that holds a number is: a semaphore when permits are taken, a latch when connections
// wait for it as for one, and else one of both.
const (
	kindSemaphore = "semaphore"
	kindLatch     = "latch"
	kindCounter   = "counter"
)

// counter is what there is to show of a name that holds a number. A plain semaphore and a
// count-down latch look alike, and neither has permits to show.
type counter struct {
	inspect.Named
	// Kind is one of the constants.
	Kind string `json:"kind"`
	// Available is the number.
	Available int `json:"available"`
	Taken     int `json:"taken"`
	// TTLMillis is how long the semaphore lives, nil for ever.
	TTLMillis *int64 `json:"ttl_ms"`
	// Permits are those that are taken, in the order in which their leases end.
	Permits []permit `json:"permits"`
	// PermitWaiters is how many connections wait for permits, LatchWaiters how many wait as for
	// a count-down latch.
	PermitWaiters int64 `json:"permit_waiters,omitempty"`
	LatchWaiters  int64 `json:"latch_waiters,omitempty"`
}

// permit is one that is taken.
type permit struct {
	ID string `json:"id"`
	// LeftMillis is what its lease has left, 0 when it is over, nil when it never ends.
	LeftMillis *int64 `json:"left_ms"`
}

// mayBeCounter reports whether an error says that the name is that of a text, as a number is.
func mayBeCounter(err error, name string) bool {
	var other *inspect.NotLock
	return errors.As(err, &other) && other.Fault == inspect.FaultType && other.Type == "string" && other.Key == name
}

// askCounter reads a number. It returns nil when the name is that of none, either.
func askCounter(ctx context.Context, g *cli.Globals, name string) (s *counter, err error) {
	err = cli.WithServer(ctx, g, name, func(srv *connect.Server, client *redlatch.Client) error {
		in, err := rsemaphore.NewExpirable(client, name).Inspect(ctx)
		if errors.Is(err, redlatch.ErrWrongType) || err == nil && !in.Exists {
			return nil
		}
		if err == nil {
			s = counterOf(name, in)
			s.countWaiters(ctx, srv)
		}
		return err
	})
	return s, err
}

// countWaiters counts those that wait for the name as for either kind; 0 when that is unknown.
func (s *counter) countWaiters(ctx context.Context, srv *connect.Server) {
	c, err := srv.Dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // only read from
	s.PermitWaiters = listening(ctx, c, codec.SemaphoreChannel(s.Name))
	s.LatchWaiters = listening(ctx, c, codec.CountDownChannel(s.Name))
	switch {
	case s.Taken > 0 || s.PermitWaiters > 0:
		s.Kind = kindSemaphore
	case s.LatchWaiters > 0:
		s.Kind = kindLatch
	}
}

func counterOf(name string, in *rsemaphore.Inspection) *counter {
	s := &counter{Named: inspect.NameOf(name), Kind: kindCounter, Available: in.Available, Taken: in.Taken, Permits: []permit{}}
	if in.TTL >= 0 {
		ms := in.TTL.Milliseconds()
		s.TTLMillis = &ms
	}
	for _, p := range in.Permits {
		shown := permit{ID: p.ID}
		if p.Left >= 0 {
			ms := p.Left.Milliseconds()
			shown.LeftMillis = &ms
		}
		s.Permits = append(s.Permits, shown)
	}
	return s
}

// print writes it for people.
func (s *counter) print(w io.Writer) {
	fmt.Fprintf(w, "%q is no lock, but a number: %d\n", s.Name, s.Available)
	if s.Kind != kindLatch {
		permits, are := "permits", "are"
		if s.Available == 1 {
			permits = "permit"
		}
		if s.Taken == 1 {
			are = "is"
		}
		said := fmt.Sprintf("as a semaphore it has %d %s available, %d %s taken", s.Available, permits, s.Taken, are)
		fmt.Fprint(w, cli.Indented("permit", said+waiting(s.PermitWaiters)))
	}
	if s.Kind != kindSemaphore {
		said := "as a count-down latch it is open"
		if s.Available > 0 {
			said = fmt.Sprintf("as a count-down latch it is closed: %d to count down", s.Available)
		}
		fmt.Fprint(w, cli.Indented("latch", said+waiting(s.LatchWaiters)))
	}
	s.printPermits(w)
}

// waiting says how many connections wait, nothing for none.
func waiting(n int64) string {
	if n == 0 {
		return ""
	}
	return "; " + connections(n) + " for it"
}

// printPermits writes how long the number lives, and the permits.
func (s *counter) printPermits(w io.Writer) {
	if s.TTLMillis != nil {
		fmt.Fprintf(w, "  lives  %s\n", cli.Millis(*s.TTLMillis))
	}
	for i, p := range s.Permits {
		if i == shownPermits {
			fmt.Fprint(w, cli.Indented("", fmt.Sprintf("and %d more (--json shows up to %d)", s.Taken-i, rsemaphore.MaxPermits)))
			return
		}
		left := "never ends"
		switch {
		case p.LeftMillis == nil:
		case *p.LeftMillis == 0:
			left = "its lease is over"
		default:
			left = cli.Millis(*p.LeftMillis) + " left"
		}
		fmt.Fprint(w, cli.WithDetails("  permit "+p.ID, left))
	}
}

// showCounter shows the number under a name that is not that of a lock, because of err. It returns
// err when there is none.
func showCounter(ctx context.Context, g *cli.Globals, name string, err error) (*counter, error) {
	if !mayBeCounter(err, name) {
		return nil, err
	}
	s, failed := askCounter(ctx, g, name)
	if failed != nil || s == nil {
		return nil, err // what the key is not
	}
	return s, nil
}
