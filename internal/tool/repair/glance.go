package repair

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// CheckIsLock returns a *Refusal for a name that is that of a hash that is no lock. It is short for
// the server: an inspection reads all of a hash.
func (t *Target) CheckIsLock(ctx context.Context, name string) error {
	odd, err := t.glance(ctx, name)
	if err == nil && odd != "" {
		return refusef(RefusedKind, "%s", oddHash(name, odd))
	}
	return err
}

// glance returns why a hash is no lock, "" when it may be one.
func (t *Target) glance(ctx context.Context, name string) (odd string, err error) {
	c, end, err := t.dial(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	if odd, err = listing.Glance(c, name); err != nil {
		err = fmt.Errorf("%w: %w", redlatch.ErrNotSent, cmp.Or(ctx.Err(), err)) // the repair was not
	}
	return odd, err
}

// dial makes a connection to read from. It is closed when ctx ends: commands on it know nothing of
// ctx.
func (t *Target) dial(ctx context.Context) (c redis.Conn, end func(), err error) {
	if c, err = t.Dial(ctx); err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return c, func() {
		stop()
		_ = c.Close() // only read from
	}, nil
}

// oddHash says that a hash is no lock.
func oddHash(name, odd string) string {
	return fmt.Sprintf("%q is a hash, and no lock of Redisson's: %s", name, odd)
}

// oddOf is what is known of a hash that is no lock.
func oddOf(name, odd string) *Forced {
	return &Forced{
		Named: inspect.NameOf(name), Holders: []inspect.Holder{}, Renewed: inspect.RenewedUnknown, shape: listing.Shape{Odd: odd},
	}
}
