package rsemaphore

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Inspection is a semaphore as the server had it at one moment.
type Inspection struct {
	// Exists is false for a semaphore that was never set, or was deleted.
	Exists bool
	// Available is how many permits can be taken, below 0 when more are taken than there
	// are; those whose leases are over are among Taken still.
	Available int
	// Taken is how many permits are taken.
	Taken int
	// TTL is how long the semaphore lives, redlatch.NoTTL for ever, 0 when it does not exist.
	TTL time.Duration
	// Permits are those of the taken ones that end first, [MaxPermits] at most, in the order
	// in which they end.
	Permits []Permit
}

// Permit is one that is taken.
type Permit struct {
	// ID is its id, with which [Expirable.Release] gives it back.
	ID string
	// Left is what its lease has left by the clock of this client, 0 when it is over: the next
	// attempt gives it back. redlatch.NoTTL, which is negative, when it never ends.
	Left time.Duration
}

// Inspect returns the permits that are taken, by clients of any language, and how many are
// available. Errors are those of [Expirable.Available]. It sends one EVALSHA, which changes
// nothing.
func (s *Expirable) Inspect(ctx context.Context) (*Inspection, error) {
	const op = "inspect"
	answer, err := s.ask(ctx, op, func(c *transport.Call) { s.semaphore.scripts.Inspect(c, 0, MaxPermits-1) })
	if err != nil {
		return nil, err
	}
	seen, err := reply.InspectedPermits(answer)
	if err != nil {
		return nil, failed(op, s.Name(), err)
	}
	in := &Inspection{Exists: seen.Left != reply.NoKey, Taken: int(seen.Taken), TTL: max(seen.Left, redlatch.NoTTL)}
	if !in.Exists {
		in.TTL = 0
	} else if in.Available, err = strconv.Atoi(seen.Available); err != nil {
		return nil, failed(op, s.Name(), fmt.Errorf("%w: the key must be a number of permits", redlatch.ErrWrongType))
	}
	now := float64(s.semaphore.clock.NowMillis())
	for _, p := range seen.Permits {
		left := redlatch.NoTTL
		if p.Ends < codec.PermitForever {
			left = limits.FromMillis(int64(min(max(p.Ends-now, 0), math.MaxInt64/2))) // the conversion of more is undefined
		}
		in.Permits = append(in.Permits, Permit{hex.EncodeToString([]byte(p.ID)), left})
	}
	return in, nil
}
