package status

import (
	"context"
	"fmt"
	"io"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/rsemaphore"
)

// shownPermits is how many of the permits that are taken are shown as text.
const shownPermits = 20

// counter is what there is to show of a name that holds a number. A plain semaphore and a
// count-down latch look alike, and neither has permits to show.
type counter struct {
	inspect.ShownNumber
	// Permits are those that are taken, in the order in which their leases end.
	Permits []permit `json:"permits"`
}

// permit is one that is taken.
type permit struct {
	ID string `json:"id"`
	// LeftMillis is what its lease has left, 0 when it is over, nil when it never ends.
	LeftMillis *int64 `json:"left_ms"`
}

// readCounter reads a number. It returns nil when the name is that of none, or cannot be read.
func readCounter(ctx context.Context, srv *connect.Server, client *redlatch.Client, name string) *counter {
	in, err := rsemaphore.NewExpirable(client, name).Inspect(ctx)
	if err != nil || !in.Exists {
		return nil
	}
	var found *inspect.Lock
	err = connect.Use(ctx, srv.Dial, func(c redis.Conn) (err error) {
		found, err = inspect.NumberAt(ctx, c, name)
		return err
	})
	if err != nil || found == nil {
		return nil
	}
	s := &counter{ShownNumber: found.Shown(), Permits: []permit{}}
	for _, p := range in.Permits {
		s.Permits = append(s.Permits, permit{p.ID, inspect.LeaseOf(true, p.Left).TTLMillis})
	}
	return s
}

// print writes it for people.
func (s *counter) print(w io.Writer) {
	fmt.Fprintf(w, "%q is no lock, but a number: %d\n", s.Name, s.Available)
	if s.Kind != inspect.Latch {
		permits, are := "permits", "are"
		if s.Available == 1 {
			permits = "permit"
		}
		if s.Taken == 1 {
			are = "is"
		}
		said := fmt.Sprintf("as a semaphore it has %d %s available, %d %s taken", s.Available, permits, s.Taken, are)
		fmt.Fprint(w, output.Indented("permit", said+waiting(s.PermitWaiters)))
	}
	if s.Kind != inspect.Semaphore {
		said := "as a count-down latch it is open"
		if s.Available > 0 {
			said = fmt.Sprintf("as a count-down latch it is closed: %d to count down", s.Available)
		}
		fmt.Fprint(w, output.Indented("latch", said+waiting(s.LatchWaiters)))
	}
	if s.TTLMillis != nil {
		fmt.Fprintf(w, "  lives  %s\n", output.Millis(*s.TTLMillis))
	}
	for i, p := range s.Permits {
		if i == shownPermits {
			fmt.Fprint(w, output.Indented("", fmt.Sprintf("and %d more (--json shows up to %d)", s.Taken-int64(i), rsemaphore.MaxPermits)))
			return
		}
		left := "never ends"
		switch {
		case p.LeftMillis == nil:
		case *p.LeftMillis == 0:
			left = "its lease is over"
		default:
			left = output.Millis(*p.LeftMillis) + " left"
		}
		fmt.Fprint(w, output.WithDetails("  permit "+p.ID, left))
	}
}

// waiting says how many connections wait, nothing for none.
func waiting(n int64) string {
	if n == 0 {
		return ""
	}
	return "; " + connections(n) + " for it"
}
