package acl_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rsemaphore"
)

// semaphores does all that both kinds of semaphores are for.
func (x *trial) semaphores() error {
	return x.each(func(name string) error {
		if strings.Contains(name, "{") {
			return nil // the manual adds the pattern without its brace for those
		}
		return errors.Join(x.permits(name), x.counter(name+"-counter"))
	})
}

// permits takes permits with ids, gives them back, and looks at them.
func (x *trial) permits(name string) error {
	s := rsemaphore.NewExpirable(x.client, name)
	if made, err := s.TrySetPermits(x.Context(), 1); err != nil || !made {
		return errors.Join(err, fmt.Errorf("made %v", made))
	}
	if err := errors.Join(s.SetPermits(x.Context(), 2), s.AddPermits(x.Context(), 1)); err != nil {
		return err
	}
	h, err := s.Acquire(x.Context(), 2, rsemaphore.WithWatchdog(lease), atMost)
	if err != nil {
		return err
	}
	_, err = s.Acquire(x.Context(), 2, rsemaphore.WithWait(50*time.Millisecond))
	if !errors.Is(err, redlatch.ErrNotAcquired) {
		return errors.Join(fmt.Errorf("more permits than are left: %w", err), h.Release())
	}
	_, err1 := s.Available(x.Context())
	_, err2 := s.Inspect(x.Context())
	// One whose lease is over is given back by the next that asks.
	x.server.Do(x, "ZADD", codec.PermitsKey(name), 1, "0123456789abcdef")
	other, err3 := s.Acquire(x.Context(), 2, atMost)
	if err3 == nil {
		err3 = other.Release()
	}
	return errors.Join(err1, err2, err3, h.Release())
}

// atMost bounds the waits of users that lack a right: a semaphore that could not be made is
// waited for.
var atMost = rsemaphore.WithWait(time.Second)

// counter does what there is to do with one that only counts.
func (x *trial) counter(name string) error {
	s := rsemaphore.New(x.client, name)
	if _, err := s.TrySet(x.Context(), 1, time.Hour); err != nil {
		return err
	}
	_, err := s.Available(x.Context())
	err = errors.Join(err, s.Acquire(x.Context(), 1, atMost), s.Release(x.Context(), 1), s.Add(x.Context(), 1))
	_, drained := s.Drain(x.Context())
	return errors.Join(err, drained)
}
