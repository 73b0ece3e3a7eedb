package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
)

// Resume takes over the lock that owner holds, from a hold that was handed over
// or from another process or language that holds it as owner: it sets the lease
// anew, renews it from now on, and returns a hold whose Unlock lowers owner's
// count by one. Options are those of Lock about the lease; WithWait gives
// ErrInvalid. ErrNotHeld says that
// owner does not hold the lock. It sends one EVALSHA.
//
// The side that had the lock before should have let go with HandOver. Otherwise
// both are one owner and both renew; its hold is lost within a renewal period
// after the lock is freed here.
func (l *Lock) Resume(ctx context.Context, owner redlatch.Owner, opts ...Option) (*Hold, error) {
	h := &Hold{}
	a := acquisition{lock: l.Internal(), op: "resume", hold: h}
	a.Began = time.Now()
	a.started(ctx)
	err := l.wrap("resume", owner, engine.Explain(l.resume(ctx, h, append(slices.Clone(opts), WithOwner(owner)))))
	a.observed(err)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (l *Lock) resume(ctx context.Context, h *Hold, opts []Option) error {
	set, err := l.check(ctx, opts)
	if err != nil {
		return err
	}
	if set.bounded {
		return fmt.Errorf("%w: Resume does not wait", redlatch.ErrInvalid)
	}
	return h.Internal().Resume(ctx, l.Internal(), &set.Terms)
}

// check is what can be checked before something is sent.
func (l *Lock) check(ctx context.Context, opts []Option) (settings, error) {
	engine.NeedContext(ctx)
	if err := l.Internal().Check(ctx); err != nil {
		return settings{}, err
	}
	return configure(l.Internal(), opts)
}

// UnlockAs lowers owner's count by one, and frees the lock with the last, as
// Redisson's unlock does, byte for byte. It is for owners that were handed over;
// a hold of this process's is given up with Unlock. ErrNotHeld says that owner
// does not hold the lock, ErrUncertain that the reply was lost or that ctx ended
// before it came; the release goes on then, for one command timeout in all. It
// sends one EVALSHA, and a DEL of the latch when that was answered.
func (l *Lock) UnlockAs(ctx context.Context, owner redlatch.Owner) error {
	_, err := l.check(ctx, []Option{WithOwner(owner)})
	if err == nil {
		err = l.Internal().UnlockAs(ctx, owner)
	}
	return l.wrap("unlock-as", owner, engine.Explain(err))
}
