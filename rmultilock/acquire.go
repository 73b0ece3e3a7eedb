package rmultilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

type taking struct {
	lock  *Lock
	op    string
	opts  []rlock.Option
	asked hold.Terms
	began time.Time
	hold  *Hold
}

func (l *Lock) acquire(ctx context.Context, op string, opts []rlock.Option) (*Hold, error) {
	engine.NeedContext(ctx)
	t := &taking{lock: l, op: op, opts: opts, began: time.Now(), hold: &Hold{lock: l}}
	if err := t.run(ctx); err != nil {
		var known *redlatch.LockError
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, t.failed(l.title(), err)
	}
	return t.hold, nil
}

func (l *Lock) title() string {
	const most = 3
	if len(l.names) <= most {
		return strings.Join(l.names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(l.names[:most], ", "), len(l.names)-most)
}

func (t *taking) failed(name string, err error) *redlatch.LockError {
	return &redlatch.LockError{Op: t.op, Name: name, Err: engine.Explain(err)}
}

func (t *taking) run(ctx context.Context) error {
	l := t.lock
	if l.err != nil {
		return t.failed(l.wrong, l.err)
	}
	var err error
	for _, s := range l.steps { // the members of one step all have the same kind
		if t.asked, err = hold.Ask(hold.Of(s.members[0]), t.opts); err != nil {
			return err
		}
	}
	switch {
	case t.asked.Given:
		return fmt.Errorf("%w: WithOwner is not supported for several locks", redlatch.ErrInvalid)
	case t.asked.Bounded && t.op == "try-lock":
		return fmt.Errorf("%w: TryLock does not wait; use Lock with WithWait", redlatch.ErrInvalid)
	}
	several := func(a *hold.Terms) { a.Several = true }
	t.asked.Several, t.opts = true, append(slices.Clone(t.opts), several)
	steps, err := t.steps(ctx)
	if err != nil {
		return err
	}
	if err := acquire.Check(ctx, nil); err != nil {
		return err
	}
	if err := l.engine.Enter(); err != nil {
		return err
	}
	defer l.engine.Leave()
	l.engine.Announce()
	return t.takeAll(ctx, steps)
}

// steps puts re-entries first, each in its own step, because they do not wait.
func (t *taking) steps(ctx context.Context) ([]step, error) {
	var again, first []step
	for _, s := range t.lock.steps {
		var others []Member
		for _, m := range s.members {
			proof, err := hold.Of(m).Proof(ctx)
			switch {
			case err != nil:
				return nil, t.failed(m.Name(), err)
			case proof != nil:
				again = append(again, step{members: []Member{m}})
			default:
				others = append(others, m)
			}
		}
		if len(others) > 0 {
			first = append(first, step{s.slot, s.batched, others})
		}
	}
	return append(again, first...), nil
}

// takeAll releases the acquired locks after an error, a panic or a loss.
func (t *taking) takeAll(ctx context.Context, steps []step) (err error) {
	done := false
	defer func() {
		if !done {
			for _, h := range t.hold.group.Holds() {
				h.ObserveGivenBack(err, time.Since(t.began))
			}
			_ = t.hold.unlock() // failures are retried in the background, or logged
		}
	}()
	group := &t.hold.group
	outside, cancel := context.WithCancel(ctx)
	defer cancel()
	inside := group.Context(outside)
	for i := range steps {
		if err = t.take(inside, &steps[i]); err != nil {
			break
		}
	}
	if err == nil {
		err = t.replicated(inside)
	}
	if over := t.over(); over != nil {
		err = over
	}
	done = err == nil
	return engine.WithEnd(ctx, err)
}

func (t *taking) over() error {
	err := t.hold.group.Err()
	if err == nil || errors.Is(err, engine.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: while the other locks were acquired: %v", engine.ErrNotAcquired, err) //nolint:errorlint // as text, because nothing was held yet
}

func (t *taking) replicated(ctx context.Context) error {
	if t.lock.engine.Replicas == 0 {
		return nil
	}
	if t.asked.Bound > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.left(), engine.ErrWaitOver)
		defer cancel()
	}
	h, err := hold.AwaitReplicas(ctx, t.hold.group.Holds())
	if err == nil {
		return nil
	}
	return t.failed(h.Lock().Name, err)
}

// left returns the remaining wait in whole milliseconds; 0 means one attempt.
func (t *taking) left() time.Duration {
	return max(0, t.asked.Bound-time.Since(t.began)).Truncate(time.Millisecond)
}

func (t *taking) take(ctx context.Context, s *step) error {
	if s.batched && len(s.members) > 1 {
		return newBatch(t, s).take(ctx)
	}
	opts := t.opts
	if t.asked.Bounded {
		opts = append(append([]rlock.Option{}, opts...), rlock.WithWait(t.left()))
	}
	h, err := lockOne(ctx, s.members[0], t.op, opts)
	if err != nil {
		return err
	}
	t.hold.group.Add(h)
	return nil
}

func lockOne(ctx context.Context, m Member, op string, opts []rlock.Option) (*hold.Hold, error) {
	switch l := m.(type) {
	case *rfencedlock.Lock:
		return called(ctx, op, l.Lock, l.TryLock, opts)
	case *rlock.Lock:
		return called(ctx, op, l.Lock, l.TryLock, opts)
	}
	return nil, fmt.Errorf("%w: cannot lock a %T with other locks", redlatch.ErrInvalid, m)
}

func called[H hold.AnyHold](
	ctx context.Context, op string, lock, try func(context.Context, ...rlock.Option) (H, error), opts []rlock.Option,
) (*hold.Hold, error) {
	if op == "try-lock" {
		lock = try
	}
	h, err := lock(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return hold.Of(hold.AnyHold(h)), nil
}

// unlock returns the reason as the first error if the hold had already ended.
func (h *Hold) unlock() error {
	over := h.group.Err()
	if errors.Is(over, engine.ErrNotHeld) {
		over = nil // an earlier Unlock returned these errors
	}
	var all []error
	if over != nil {
		all = append(all, &redlatch.LockError{Op: "unlock", Name: h.lock.title(), Err: over})
	}
	for i, err := range h.group.Unlock(free) {
		if err == nil || over != nil && errors.Is(over, err) {
			continue
		}
		held := h.group.Holds()[i]
		all = append(all, &redlatch.LockError{Op: "unlock", Name: held.Lock().Name, Owner: held.ID(), Err: err})
	}
	return errors.Join(all...)
}
