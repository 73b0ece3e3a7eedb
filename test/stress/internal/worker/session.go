//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	inner "github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

type session struct {
	w      *worker
	ctx    context.Context // canceled when the process is drained
	rnd    *rand.Rand
	key    Key
	client *redlatch.Client
	lock   *rlock.Lock
	reads  bool
	inside []*sampledHold // live holds, outermost first
	unsure bool           // whether the server's count is unknown
	shared bool           // whether the owner was resumed
	left   bool           // whether an inner unlock may be resolved later
}

func (s *session) chance(p float64) bool { return s.rnd.Float64() < p }

func (s *session) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rnd.Int64N(int64(most-least)))
}

func (s *session) run() {
	h := s.take()
	if h == nil {
		return
	}
	s.inside = append(s.inside, h)
	s.use(h, 0)
	s.give(h)
	if len(s.inside) == 0 && !s.unsure && h.hold.Err() != nil {
		s.w.auditor.absent(s.key.Name, h)
	}
}

// take acquires the lock in a random way. It returns nil if that fails.
func (s *session) take() *sampledHold {
	habits := &s.w.cfg.Habits
	if habits.HandOver > 0 && s.chance(0.5) {
		if owner, err := codec.ParseOwner(s.w.auditor.taken(s.role())); err == nil {
			s.shared = true
			return s.call("resume", 0, nil, s.key.Lease, func(ctx context.Context) (*rlock.Hold, error) {
				return s.lock.Resume(ctx, owner, rlock.WithWatchdog(s.key.Lease))
			})
		}
	}
	lease, opts := s.leaseOptions()
	switch {
	case s.chance(habits.Try):
		return s.call("try-lock", 0, nil, lease, func(ctx context.Context) (*rlock.Hold, error) {
			return s.lock.TryLock(ctx, opts...)
		})
	case s.chance(habits.Cancel):
		soon := s.between(0, 800*time.Millisecond)
		if s.chance(habits.Together) {
			soon = patience
		}
		return s.call("lock", soon, nil, lease, func(context.Context) (*rlock.Hold, error) {
			ctx, cancel := context.WithTimeout(s.w.group.context(), soon)
			defer cancel()
			return s.lock.Lock(ctx, opts...)
		})
	default:
		wait := s.between(patience/2, patience)
		opts = append(opts, rlock.WithWait(wait))
		return s.call("lock", wait, nil, lease, func(ctx context.Context) (*rlock.Hold, error) {
			return s.lock.Lock(ctx, opts...)
		})
	}
}

func (s *session) leaseOptions() (time.Duration, []rlock.Option) {
	habits := &s.w.cfg.Habits
	switch {
	case s.chance(habits.Fixed):
		return -s.key.Lease, []rlock.Option{rlock.WithLease(s.key.Lease)}
	case s.chance(habits.MaxHold):
		return s.key.Lease, []rlock.Option{
			rlock.WithWatchdog(s.key.Lease), rlock.WithMaxHold(s.between(300*time.Millisecond, 3*time.Second)),
		}
	default:
		return s.key.Lease, []rlock.Option{rlock.WithWatchdog(s.key.Lease)}
	}
}

// call calls f, which acquires the lock, and records the call. A negative lease is not renewed.
func (s *session) call(op string, wait time.Duration, outer *sampledHold, lease time.Duration,
	f func(context.Context) (*rlock.Hold, error),
) *sampledHold {
	id, reads := s.w.nextID(), s.reads
	r := history.Record{Kind: history.Call, ID: id, Op: op, Key: s.key.Name, Wait: wait + overhead}
	ctx := s.ctx
	if outer != nil {
		r.Hold = outer.id
		ctx = outer.hold.Context(ctx)
	}
	s.w.log.Write(r)
	hold, err := f(ctx)
	at := history.Now()
	s.w.log.Write(history.Record{T: at, Kind: history.Return, ID: id, Err: Class(err)})
	if err != nil {
		s.unsure = s.unsure || errors.Is(err, redlatch.ErrUncertain) || outer != nil
		return nil
	}
	// A history identifies holders by their owners, so the client must not reuse an owner.
	inner.Of(hold).Fail()
	h := &sampledHold{id: id, hold: hold, lock: hold, reads: reads, field: hold.Owner().String(), lease: max(lease, -lease)}
	if s.key.ReadWrite && !reads {
		h.field = protocol.WriterField(h.field)
	}
	g := history.Record{
		T: at, Kind: history.Grant, ID: id, Hold: id, Key: s.key.Name, Owner: hold.Owner().String(),
		Lease: h.lease, Margin: min(h.lease/10, time.Second), Renewed: lease > 0,
		Token: inner.Of(hold).Token(), Read: reads,
	}
	if outer != nil {
		g.Outer = outer.id
	}
	s.w.log.Write(g)
	s.w.sampler.add(h)
	return h
}

func (s *session) use(h *sampledHold, depth int) {
	s.audit(h)
	for range 1 + s.rnd.IntN(3) {
		s.w.auditor.mark(s.key.Name, h)
		if h.hold.Err() != nil {
			s.unsure = true
			return
		}
		if depth < 3 && s.chance(s.w.cfg.Habits.Reenter) {
			s.reenter(h, depth)
		}
		if s.chance(0.2) {
			s.audit(h)
		}
		s.pause(h)
	}
	s.w.auditor.mark(s.key.Name, h)
}

// audit lets the history compare the counts unless a hold has ended in between.
func (s *session) audit(h *sampledHold) {
	s.w.auditor.audit(s.key.Name, h, func() (depth int64, exact bool) {
		for _, in := range s.inside {
			if s.unsure = s.unsure || in.hold.Err() != nil; s.unsure {
				return 0, false
			}
		}
		for _, in := range s.inside {
			if in.reads == h.reads {
				depth++
			}
		}
		return depth, !s.left
	})
}

func (s *session) pause(h *sampledHold) {
	d := s.between(0, 60*time.Millisecond)
	if s.chance(s.w.cfg.Habits.Linger) {
		d = s.between(0, min(4*time.Second, h.lease+time.Second))
	}
	select {
	case <-h.hold.Context(s.ctx).Done():
	case <-time.After(d):
	}
}

func (s *session) role() string {
	if s.reads {
		return s.key.Name + " read"
	}
	return s.key.Name
}

// reenter acquires the lock again with the proof of a hold. A writer sometimes acquires the read lock.
func (s *session) reenter(outer *sampledHold, depth int) {
	if s.key.ReadWrite && !s.reads && s.chance(0.5) {
		lock := s.lock
		s.lock, s.reads = s.key.Lock(s.client, true), true
		defer func() { s.lock, s.reads = lock, false }()
	}
	inner := s.call("lock", 0, outer, s.key.Lease, func(ctx context.Context) (*rlock.Hold, error) {
		return s.lock.Lock(ctx, rlock.WithWatchdog(s.key.Lease))
	})
	if inner == nil {
		return
	}
	s.inside = append(s.inside, inner)
	s.use(inner, depth+1)
	s.unlock(inner)
	s.left = true
}

func (s *session) give(h *sampledHold) {
	habits := &s.w.cfg.Habits
	switch {
	case s.chance(habits.Expire) && s.leave("let-expire", h, h.lock.LetExpire):
	case s.chance(habits.HandOver) && s.leave("hand-over", h, func() error {
		owner, err := h.lock.HandOver()
		if err == nil && (!s.shared || !s.unsure) { // HandOver corrects the count only if the owner is not shared
			s.w.auditor.handOver(s.role(), owner.String())
		}
		return err
	}):
	default:
		s.unlock(h)
	}
}

// leave ends a hold with an operation that does not free the lock, and reports whether it succeeded.
func (s *session) leave(op string, h *sampledHold, f func() error) bool {
	s.w.sampler.remove(h)
	s.w.log.Write(history.Record{Kind: history.Give, Hold: h.id, Op: op})
	if s.made(op, h, f) == nil {
		s.unsure = true
		return true
	}
	s.w.log.Write(history.Record{Kind: history.Kept, Hold: h.id})
	s.w.sampler.add(h)
	return false
}

func (s *session) unlock(h *sampledHold) {
	s.w.sampler.remove(h)
	s.w.log.Write(history.Record{Kind: history.Give, Hold: h.id, Op: "unlock"})
	if s.made("unlock", h, func() error {
		if s.chance(s.w.cfg.Habits.Together) {
			// This is meant to hit a caller that is just returning. A timer would not be precise enough.
			go s.w.group.cancelAllIn(s.between(0, 300*time.Microsecond))
		}
		return h.lock.Unlock()
	}) != nil {
		s.unsure = true
	}
	s.inside = slices.DeleteFunc(s.inside, func(in *sampledHold) bool { return in == h })
}

func (s *session) made(op string, h *sampledHold, f func() error) error {
	id := s.w.nextID()
	s.w.log.Write(history.Record{Kind: history.Call, ID: id, Op: op, Key: s.key.Name, Hold: h.id, Wait: overhead})
	err := f()
	s.w.log.Write(history.Record{Kind: history.Return, ID: id, Err: Class(err)})
	return err
}

func (w *worker) nextID() string { return fmt.Sprintf("%s/%d", w.cfg.Process, w.ids.Add(1)) }
