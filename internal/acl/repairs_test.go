package acl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// repairs forces locks and evicts dead waiters: the first in the queue, and others behind it, whose deadlines are in
// order or out of order.
func (x *trial) repairs() error {
	hour := time.Hour
	dead := map[string]time.Duration{"first": hour, "second": 2 * hour, "third": 3 * hour, "late": 5 * hour, "soon": 4 * hour}
	if err := x.inspects(); err != nil {
		return err
	}
	err := x.each(x.forces, func(name string) error {
		x.heldByHand(name)
		x.server.Do(x, "DEL", codec.QueueKey(name), codec.TimeoutKey(name))
		x.queuedByHand(name, dead, "first", "second", "third", "late", "soon")
		l := rfairlock.New(x.client, name)
		for _, owner := range []string{"third", "second", "first"} {
			if _, err := admin.Evict(x.Context(), l, owner); err != nil {
				return err
			}
			if slices.Contains(x.queue(name), owner) {
				return fmt.Errorf("%s is still queued", owner)
			}
		}
		_, err := l.ForceUnlock(x.Context())
		if err == nil && !strings.Contains(name, "{") {
			x.server.Do(x, "HSET", name, protocol.ModeField, protocol.ModeRead, "an owner", 1)
			_, err = rreadwritelock.New(x.client, name).Read().ForceUnlock(x.Context())
		}
		return errors.Join(err, x.until("it no longer listens", func() bool { return x.listening(codec.LockChannel(name)) == 0 }))
	}, x.takesFromOne)
	if err != nil {
		return err
	}
	return x.until("the clocks are compared", func() bool { return x.server.CommandStats(x)["time"] > 0 })
}

// takesFromOne forces out one of two readers, and releases one permit.
func (x *trial) takesFromOne(name string) error {
	const permit = "30313233343536373839616263646566"
	if strings.Contains(name, "{") {
		return nil // the manual adds the pattern without its brace for those
	}
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialURLContext(ctx, x.url) }
	take := func(owner string) (*repair.Forced, error) {
		u := repair.Unlock{Target: repair.Target{Client: x.client, Dial: dial}, Name: name, Owners: []string{owner}, EvenIfAlive: true}
		return u.Run(x.Context())
	}
	other := foreign + "1"
	x.server.Do(x, "HSET", name, protocol.ModeField, protocol.ModeRead, foreign, 1, other, 1)
	x.server.Do(x, "PEXPIRE", name, 2*time.Hour.Milliseconds())
	for _, owner := range []string{foreign, other} {
		x.server.Do(x, "SET", "{"+name+"}:"+owner+":rwlock_timeout:1", 1, "PX", time.Hour.Milliseconds())
	}
	x.server.Do(x, "SET", engine.LabelKey(uuid.MustParse(strings.TrimSuffix(foreign, ":7"))), "a label")
	_, err1 := take(foreign)
	f, err2 := take(other)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !slices.ContainsFunc(f.Holders, func(h inspect.Holder) bool { return h.Label == "a label" }) {
		return errors.New("the holder's label cannot be read")
	}
	x.server.Do(x, "SET", name, 0)
	x.server.Do(x, "ZADD", protocol.PermitsKey(name), protocol.PermitForever, "0123456789abcdef")
	_, err := take(permit)
	return err
}

// semaphores uses all operations of both kinds of semaphores.
func (x *trial) semaphores() error {
	return x.unbraced(func(name string) error {
		return errors.Join(x.permits(name), x.counter(name+"-counter"))
	})
}

// permits acquires, releases and inspects permits with IDs.
func (x *trial) permits(name string) error {
	s := rsemaphore.NewExpirable(x.client, name)
	if made, err := s.TrySetPermits(x.Context(), 1); err != nil || !made {
		return errors.Join(err, fmt.Errorf("made %v", made))
	}
	if err := s.SetPermits(x.Context(), 2); err != nil {
		return err
	}
	h, err := s.Acquire(x.Context(), 2, rlock.WithWatchdog(lease), atMost)
	if err != nil {
		return err
	}
	w, err := x.listens(protocol.SemaphoreChannel(name), func(ctx context.Context) (func() error, error) {
		more, err := s.Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return more.Release, nil
	})
	if err != nil {
		return errors.Join(err, h.Release())
	}
	if err := errors.Join(s.AddPermits(x.Context(), 1), w.unlock()); err != nil {
		return errors.Join(err, h.Release())
	}
	_, err1 := s.Available(x.Context())
	_, err2 := s.Inspect(x.Context())
	// The next acquire releases an expired permit.
	x.server.Do(x, "ZADD", protocol.PermitsKey(name), 1, "0123456789abcdef")
	other, err3 := s.Acquire(x.Context(), 2, atMost)
	if err3 == nil {
		err3 = other.Release()
	}
	return errors.Join(err1, err2, err3, h.Release())
}

// atMost limits the waits of users that lack a right, because they wait for a semaphore that could not be created.
var atMost = rlock.WithWait(time.Second)

func (x *trial) counter(name string) error {
	s := rsemaphore.New(x.client, name)
	if _, err := s.TrySetPermits(x.Context(), 1, time.Hour); err != nil {
		return err
	}
	_, err := s.Available(x.Context())
	err = errors.Join(err, s.Acquire(x.Context(), 1, atMost), s.Release(x.Context(), 1), s.AddPermits(x.Context(), 1))
	_, drained := s.Drain(x.Context())
	return errors.Join(err, drained)
}
