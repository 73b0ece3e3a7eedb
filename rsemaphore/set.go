package rsemaphore

import (
	"context"

	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// TrySetPermits makes the semaphore with n permits, 0 to 2^31-1, unless it exists, and reports
// whether it did. It never changes how many there are, so each process may call it when it
// starts. Do not delete the key to set it anew while permits are taken: they come back, and
// there are more than n then; see [Expirable.SetPermits]. Errors: ErrInvalid, ErrNotSent,
// ErrUncertain, after which it may be repeated, ErrClosed, and *transport.ServerError. It sends
// one EVALSHA.
func (s *Expirable) TrySetPermits(ctx context.Context, n int) (bool, error) {
	const op = "try-set-permits"
	answer, err := s.change(ctx, op, int64(n), 0, func(c *transport.Call) { s.semaphore.scripts.TrySet(c, int64(n), 0) })
	if err != nil {
		return false, err
	}
	made, err := reply.Exists(answer)
	return made, failed(op, s.Name(), err)
}

// SetPermits sets how many permits the semaphore has, with those that are taken: 0 to 2^31-1.
// Where more are taken than that, none is available until enough of them have come back. It is
// for a number that changes while permits are out, and may be repeated. Errors are those of
// [Expirable.TrySetPermits], and ErrWrongType. It sends one EVALSHA.
func (s *Expirable) SetPermits(ctx context.Context, n int) error {
	_, err := s.change(ctx, "set-permits", int64(n), 0, func(c *transport.Call) { s.semaphore.scripts.Set(c, int64(n)) })
	return err
}

// AddPermits makes n permits more available, or fewer when n is below 0; a semaphore that does
// not exist has them then. It must not be repeated after ErrUncertain: look at
// [Expirable.Permits], or use [Expirable.SetPermits]. Errors as there. It sends one EVALSHA.
func (s *Expirable) AddPermits(ctx context.Context, n int) error {
	_, err := s.change(ctx, "add-permits", int64(n), -maxCount, func(c *transport.Call) { s.semaphore.scripts.Add(c, int64(n)) })
	return err
}

// change runs a call that changes the number of permits.
func (s *Expirable) change(ctx context.Context, op string, n, least int64, fill func(*transport.Call)) (any, error) {
	if err := checkCount(n, least, maxCount); err != nil {
		return nil, failed(op, s.Name(), err)
	}
	return s.publish(ctx, op, fill)
}

// Available returns how many permits can be taken now, below 0 when [Expirable.SetPermits] has
// left fewer than are taken. Those whose leases are over count. It sends one EVALSHA, which
// changes nothing.
func (s *Expirable) Available(ctx context.Context) (int, error) {
	_, available, _, err := s.count(ctx, "available")
	return int(available), err
}

// Acquired returns how many permits are taken, by clients of any language. Otherwise as
// [Expirable.Available].
func (s *Expirable) Acquired(ctx context.Context) (int, error) {
	_, _, taken, err := s.count(ctx, "acquired")
	return int(taken), err
}

// Permits returns how many permits there are, available and taken, 0 for a semaphore that does
// not exist. Otherwise as [Expirable.Available].
func (s *Expirable) Permits(ctx context.Context) (int, error) {
	exists, available, taken, err := s.count(ctx, "permits")
	if !exists {
		return 0, err
	}
	return int(available + taken), err
}

func (s *Expirable) count(ctx context.Context, op string) (exists bool, available, taken int64, err error) {
	answer, err := s.ask(ctx, op, func(c *transport.Call) { s.semaphore.scripts.Count(c, s.semaphore.clock.NowMillis()) })
	if err != nil {
		return false, 0, 0, err
	}
	exists, available, taken, err = reply.CountedPermits(answer)
	return exists, available, taken, failed(op, s.Name(), err)
}
