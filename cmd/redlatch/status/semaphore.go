package status

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/rsemaphore"
)

// shownPermits is how many of the permits that are taken are shown as text.
const shownPermits = 20

// semaphore is what there is to show of a semaphore. A counter has no permits to show.
type semaphore struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Available int    `json:"available"`
	Taken     int    `json:"taken"`
	// TTLMillis is how long the semaphore lives, nil for ever.
	TTLMillis *int64 `json:"ttl_ms"`
	// Permits are those that are taken, in the order in which their leases end.
	Permits []permit `json:"permits"`
}

// permit is one that is taken.
type permit struct {
	ID string `json:"id"`
	// LeftMillis is what its lease has left, 0 when it is over, nil when it never ends.
	LeftMillis *int64 `json:"left_ms"`
}

// mayBeSemaphore reports whether an error says that the name is that of a text, as the number of
// a semaphore is.
func mayBeSemaphore(err error, name string) bool {
	var other *inspect.NotLock
	return errors.As(err, &other) && other.Fault == inspect.FaultType && other.Type == "string" && other.Key == name
}

// askSemaphore reads a semaphore. It returns nil when the name is none of one, either.
func askSemaphore(ctx context.Context, g *cli.Globals, name string) (s *semaphore, err error) {
	err = cli.WithClient(ctx, g, name, func(client *redlatch.Client) error {
		in, err := rsemaphore.NewExpirable(client, name).Inspect(ctx)
		if errors.Is(err, redlatch.ErrWrongType) || err == nil && !in.Exists {
			return nil
		}
		if err == nil {
			s = semaphoreOf(name, in)
		}
		return err
	})
	return s, err
}

func semaphoreOf(name string, in *rsemaphore.Inspection) *semaphore {
	s := &semaphore{Name: name, Kind: "semaphore", Available: in.Available, Taken: in.Taken, Permits: []permit{}}
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

// print writes the semaphore for people.
func (s *semaphore) print(w io.Writer) {
	fmt.Fprintf(w, "semaphore %q has %d permits available, %d are taken\n", s.Name, s.Available, s.Taken)
	if s.TTLMillis != nil {
		fmt.Fprintf(w, "  lives  %s\n", output.Millis(*s.TTLMillis))
	}
	for i, p := range s.Permits {
		if i == shownPermits {
			fmt.Fprint(w, output.Indented("", fmt.Sprintf("and %d more (--json shows up to %d)", s.Taken-i, rsemaphore.MaxPermits)))
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

// showSemaphore shows the semaphore of a name that is not that of a lock, because of err. It
// returns err when it is none.
func showSemaphore(ctx context.Context, g *cli.Globals, name string, err error) (*semaphore, error) {
	if !mayBeSemaphore(err, name) {
		return nil, err
	}
	s, failed := askSemaphore(ctx, g, name)
	if failed != nil || s == nil {
		return nil, err // what the key is not
	}
	return s, nil
}
