package repair

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// isSemaphore reports whether the name is that of a number, as that of a semaphore is.
func (u *Unlock) isSemaphore(ctx context.Context) bool {
	c, err := u.Dial(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // only read from
	found, err := listing.NumberAt(ctx, c, u.Name)
	return err == nil && found != nil
}

// lookPermits looks at the permits to take back. Each permit that is taken is a holder in Forced.
func (u *Unlock) lookPermits(ctx context.Context) (*look, error) {
	c, end, err := u.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	l := &look{Forced: &Forced{
		Named: inspect.NameOf(u.Name), Kind: string(listing.Semaphore), Holders: []inspect.Holder{}, Renewed: inspect.RenewedUnknown,
		shape: listing.Shape{Kind: listing.Semaphore}, wanted: u.owners(),
	}, asked: time.Now()}
	var ids, raw []string
	for _, id := range l.wanted {
		if decoded, err := hex.DecodeString(id); err == nil && id != "" { // no permit has another id
			ids, raw = append(ids, id), append(raw, string(decoded))
		}
	}
	ends, now, err := listing.PermitEnds(c, u.Name, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", redlatch.ErrNotSent, cmp.Or(ctx.Err(), err)) // the repair was not
	}
	l.answered = time.Now()
	for i, id := range ids {
		end, taken := ends[raw[i]]
		if !taken {
			continue
		}
		h := inspect.Holder{Owner: id, Count: "1", Client: inspect.ClientOf(id), Mode: "permit"}
		if end < codec.PermitForever {
			left := max(end-now, 0)
			h.LeftMillis = &left
		}
		l.Holders = append(l.Holders, h)
	}
	return l, nil
}
