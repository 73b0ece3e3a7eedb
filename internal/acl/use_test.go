package acl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

func (x *trial) plainLocks() error {
	return x.each(x.holdsTwice, x.looksOn, x.waits, x.forces)
}

// holdsTwice acquires a lock, reenters it, renews it, and releases it.
func (x *trial) holdsTwice(name string) error {
	l := rlock.New(x.client, name)
	hold, err := l.TryLock(x.Context(), rlock.WithLease(lease))
	if err != nil {
		return err
	}
	inner, err := l.Lock(hold.Context(x.Context()), rlock.WithLease(lease))
	if err != nil {
		return err
	}
	return errors.Join(x.renew(hold), inner.Unlock(), hold.Unlock())
}

// renew renews a hold as the watchdog does.
func (x *trial) renew(hold *rlock.Hold) error {
	came := make(chan error, 1)
	call := &transport.Call{
		Script: luasrc.Renew, NumKeys: 1,
		Args: []any{hold.Name(), hold.Owner().String(), lease.Milliseconds()},
	}
	engine.EngineOf(x.client).Transport.Start(call, func(_ any, err error) { came <- err })
	return <-came
}

// looksOn makes every call that inspects another owner's lock.
func (x *trial) looksOn(name string) error {
	x.heldByHand(name)
	defer x.server.Do(x, "DEL", name)
	l := rlock.New(x.client, name)
	_, err1 := l.IsLocked(x.Context())
	_, err2 := l.TTL(x.Context())
	owner, err := codec.ParseOwner(foreign)
	if err != nil {
		return err
	}
	_, err3 := l.HoldCount(x.Context(), owner)
	_, err = l.TryLock(x.Context())
	var refusal *redlatch.LockError
	if errors.As(err, &refusal) && errors.Is(err, redlatch.ErrNotAcquired) {
		err = nil
		if refusal.Holder != owner {
			err = errors.New("the error does not name the holder")
		}
	}
	return errors.Join(err1, err2, err3, err)
}

func (x *trial) waits(name string) error {
	x.heldByHand(name)
	channel := codec.LockChannel(name)
	w, err := x.listens(channel, locks(rlock.New(x.client, name)))
	if err != nil {
		return err
	}
	x.server.Do(x, "DEL", name)
	x.server.Do(x, "PUBLISH", channel, protocol.MessageUnlock)
	if err := w.unlock(); err != nil {
		return err
	}
	return x.until("it no longer listens", func() bool { return x.listening(channel) == 0 })
}

func (x *trial) forces(name string) error {
	x.heldByHand(name)
	_, err := rlock.New(x.client, name).ForceUnlock(x.Context())
	return err
}

// waitsForReplicas requires a replica for the lock. The server does not have any, so the error is expected.
func (x *trial) waitsForReplicas() error {
	return x.each(func(name string) error {
		_, err := rlock.New(x.client, name).TryLock(x.Context())
		if err != nil && strings.Contains(err.Error(), "0 of 1 required replicas") {
			return nil
		}
		return fmt.Errorf("replicas were not waited for: %w", err)
	})
}

// tokens acquires a fenced lock twice, and reads the last token.
func (x *trial) tokens() error {
	return x.unbraced(func(name string) error {
		l := rfencedlock.New(x.client, name)
		hold, err := l.TryLock(x.Context(), rlock.WithLease(lease))
		if err != nil {
			return err
		}
		inner, err := l.Lock(hold.Context(x.Context()), rlock.WithLease(lease))
		if err != nil {
			return errors.Join(err, hold.Unlock())
		}
		_, err = l.Token(x.Context())
		return errors.Join(err, inner.Unlock(), hold.Unlock())
	})
}

func (x *trial) readWriteLocks() error {
	return x.unbraced(func(name string) error {
		rw := rreadwritelock.New(x.client, name)
		w, err := rw.Write().TryLock(x.Context(), rlock.WithLease(lease))
		if err != nil {
			return err
		}
		r, err := rw.Read().Lock(w.Context(x.Context()), rlock.WithLease(lease))
		if err != nil {
			return errors.Join(err, w.Unlock())
		}
		if err := w.Unlock(); err != nil {
			return errors.Join(err, r.Unlock())
		}
		writer, err := x.listens(protocol.ReadWriteChannel(name), locks(rw.Write()))
		if err != nil {
			return errors.Join(err, r.Unlock())
		}
		if err := r.Unlock(); err != nil {
			return err
		}
		return errors.Join(writer.unlock(), x.leavesMany(rw.Read()))
	})
}

// leavesMany releases a lock that many others read, and requires that the script checks random readers.
func (x *trial) leavesMany(l *rlock.Lock) error {
	defer x.server.Do(x, "DEL", l.Name())
	x.readByMany(l.Name())
	hold, err := l.TryLock(x.Context(), rlock.WithLease(lease))
	if err != nil {
		return err
	}
	return errors.Join(hold.Unlock(), x.runs("hrandfield"))
}

// runs returns an error unless the server has run command. It is for commands whose refusal the scripts do not report.
func (x *trial) runs(command string) error {
	if x.server.CommandStats(x)[command] == 0 {
		return errors.New(command + " has not run")
	}
	return nil
}

func (x *trial) latches() error {
	return x.unbraced(func(name string) error {
		l := rlatch.New(x.client, name)
		if _, err := l.TrySetCount(x.Context(), 1); err != nil {
			return err
		}
		w, err := x.listens(protocol.CountDownChannel(name), func(ctx context.Context) (func() error, error) {
			return func() error { return nil }, l.Wait(ctx)
		})
		if err != nil {
			return err
		}
		_, err1 := l.Count(x.Context())
		err2 := l.CountDown(x.Context())
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		err = w.unlock()
		_, err1 = l.TrySetCount(x.Context(), 2)
		err2 = l.CountDown(x.Context())
		_, err3 := l.Delete(x.Context())
		return errors.Join(err, err1, err2, err3)
	})
}

func (x *trial) fairLocks() error {
	return x.each(func(name string) error {
		l := rfairlock.New(x.client, name)
		hold, err := l.TryLock(x.Context(), rlock.WithLease(lease))
		if err != nil {
			return err
		}
		inner, err := l.Lock(hold.Context(x.Context()), rlock.WithLease(lease))
		if err != nil {
			return err
		}
		w, err := x.queues(l, 0)
		if err != nil {
			return errors.Join(err, inner.Unlock(), hold.Unlock())
		}
		return errors.Join(x.leaves(l, "in order"), x.leaves(l, "later", "sooner"),
			inner.Unlock(), hold.Unlock(), w.unlock(), x.movesUp(l))
	}, func(name string) error {
		x.heldByHand(name)
		_, err := rfairlock.New(x.client, name).ForceUnlock(x.Context())
		return err
	})
}

// movesUp acquires the lock ahead of waiters added by hand, and expects all their deadlines to move
// together.
func (x *trial) movesUp(l *rlock.Lock) error {
	key, deadline := codec.TimeoutKey(l.Name()), time.Now().Add(time.Hour).UnixMilli()
	for i := range int64(5) {
		x.server.Do(x, "ZADD", key, deadline+i, fmt.Sprint("waiter ", i))
	}
	defer x.server.Do(x, "DEL", key)
	hold, err := l.TryLock(x.Context(), rlock.WithLease(lease))
	if err != nil {
		return err
	}
	return errors.Join(hold.Unlock(), x.runs("zunionstore"))
}

// queues makes a caller queue behind others.
func (x *trial) queues(l *rlock.Lock, behind int) (*waiting, error) {
	w := x.await(l)
	err := x.until("it is queued", func() bool { return w.over() || len(x.queue(l.Name())) > behind })
	if err == nil && w.over() {
		err = w.err
	}
	return w, err
}

// leaves makes a caller leave a queue in which it is ahead of others, which are added and removed by hand.
func (x *trial) leaves(l *rlock.Lock, others ...string) error {
	w, err := x.queues(l, 1)
	if err != nil {
		return err
	}
	x.queuedByHand(l.Name(), map[string]time.Duration{
		"in order": 3 * time.Hour, "later": 3 * time.Hour, "sooner": 2 * time.Hour,
	}, others...)
	w.cancel()
	err = x.until("it has left", func() bool { return len(x.queue(l.Name())) == 1+len(others) })
	for _, other := range others {
		x.server.Do(x, "LREM", codec.QueueKey(l.Name()), 0, other)
		x.server.Do(x, "ZREM", codec.TimeoutKey(l.Name()), other)
	}
	return err
}

func (x *trial) theClocks() error {
	_, err := engine.EngineOf(x.client).Clock.Offset(x.Context())
	return err
}

func (x *trial) whoListens() error {
	_, err := inspect.Listeners(x.Context(), x.client, x.names()[0], foreign)
	return err
}

// callsInDoubt makes a client lose the reply to an acquire and resolve the call in doubt, twice.
func (x *trial) callsInDoubt() error {
	p := redistest.NewProxy(x, x.server.Addr())
	log, logger := redistest.NewJournal()
	c, err := redlatch.Open(x.Context(), strings.Replace(x.url, x.server.Addr(), p.Addr(), 1), redlatch.WithLogger(logger))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	x.log = log
	l := rlock.New(c, x.names()[0])
	hold, err := l.TryLock(x.Context()) // loads the script
	if err != nil {
		return err
	}
	if err := hold.Unlock(); err != nil {
		return err
	}
	for i := range 2 {
		p.CutReplyAfter(0)
		if _, err := l.TryLock(x.Context()); !errors.Is(err, redlatch.ErrUncertain) {
			return fmt.Errorf("no doubt: %w", err)
		}
		err := x.patiently("the doubt is settled", func() bool { return len(log.Lines("unresolved call resolved")) > i })
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *trial) inspects() error {
	return x.each(func(name string) error {
		x.heldByHand(name)
		x.queuedByHand(name, nil, "somebody")
		_, err1 := admin.Inspect(x.Context(), rlock.New(x.client, name))
		_, err2 := admin.Inspect(x.Context(), rfairlock.New(x.client, name))
		return errors.Join(err1, err2)
	})
}

func (x *trial) sharesOwners() error {
	return x.each(func(name string) error {
		l, owner := rlock.New(x.client, name), codec.NewOwner(uuid.New(), 7)
		hold, err := l.Lock(x.Context(), rlock.WithOwner(owner), rlock.WithLease(lease))
		if err != nil {
			return err
		}
		return hold.Unlock()
	})
}

func (x *trial) hasAName() error {
	clients, _ := x.server.Do(x, "CLIENT", "LIST").([]byte)
	if !strings.Contains(string(clients), " name=with-a-name ") {
		return errors.New("it has no name")
	}
	return nil
}
