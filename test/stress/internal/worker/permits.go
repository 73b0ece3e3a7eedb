//go:build linux

package worker

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const mostAtOnce = 3

type permitSession struct {
	session
	n int
}

func (s *permitSession) run() {
	h := s.take()
	if h == nil {
		return
	}
	s.look(h)
	for range 1 + s.rnd.IntN(3) {
		s.w.auditor.mark(s.key.Name, h)
		if h.hold.Err() != nil {
			break
		}
		if s.chance(0.2) {
			s.look(h)
		}
		s.pause(h)
	}
	s.w.auditor.mark(s.key.Name, h)
	s.give(h)
}

// take acquires permits in a random way. It returns nil if that fails.
func (s *permitSession) take() *sampledHold {
	habits := &s.w.cfg.Habits
	lease, terms := s.terms()
	switch {
	case s.chance(habits.Try):
		return s.call("try-acquire", 0, lease, func(ctx context.Context) (*sampledHold, error) { return s.acquire(ctx, true, terms) })
	case s.chance(habits.Cancel):
		soon := s.between(0, 800*time.Millisecond)
		if s.chance(habits.Together) {
			soon = patience
		}
		return s.call("acquire", soon, lease, func(context.Context) (*sampledHold, error) {
			ctx, cancel := context.WithTimeout(s.w.group.context(), soon)
			defer cancel()
			return s.acquire(ctx, false, terms)
		})
	default:
		wait := s.between(patience/2, patience)
		terms = append(terms, rlock.WithWait(wait))
		return s.call("acquire", wait, lease, func(ctx context.Context) (*sampledHold, error) { return s.acquire(ctx, false, terms) })
	}
}

// terms returns a lease and its options. A negative lease is not renewed.
func (s *permitSession) terms() (time.Duration, []rlock.Option) {
	habits, lease := &s.w.cfg.Habits, s.key.Lease
	switch {
	case s.key.Counter:
		return 0, nil
	case s.chance(habits.Fixed):
		return -lease, []rlock.Option{rlock.WithLease(lease)}
	case s.chance(habits.MaxHold):
		return lease, []rlock.Option{
			rlock.WithWatchdog(lease), rlock.WithMaxHold(s.between(300*time.Millisecond, 3*time.Second)),
		}
	default:
		return lease, []rlock.Option{rlock.WithWatchdog(lease)}
	}
}

func (s *permitSession) acquire(ctx context.Context, try bool, terms []rlock.Option) (*sampledHold, error) {
	if s.key.Counter {
		take := rsemaphore.New(s.client, s.key.Name).Acquire
		if try {
			take = rsemaphore.New(s.client, s.key.Name).TryAcquire
		}
		return &sampledHold{hold: counted{}}, take(ctx, s.n, terms...)
	}
	take := rsemaphore.NewExpirable(s.client, s.key.Name).Acquire
	if try {
		take = rsemaphore.NewExpirable(s.client, s.key.Name).TryAcquire
	}
	h, err := take(ctx, s.n, terms...)
	if err != nil {
		return nil, err
	}
	return &sampledHold{hold: h, permits: h, field: h.IDs()[0]}, nil
}

func (s *permitSession) call(op string, wait, lease time.Duration, f func(context.Context) (*sampledHold, error)) *sampledHold {
	id := s.w.nextID()
	s.w.log.Write(history.Record{Kind: history.Call, ID: id, Op: op, Key: s.key.Name, Wait: wait + overhead, Permits: int64(s.n)})
	h, err := f(s.ctx)
	at := history.Now()
	s.w.log.Write(history.Record{T: at, Kind: history.Return, ID: id, Err: Class(err)})
	if err != nil {
		return nil
	}
	h.id, h.lease = id, max(lease, -lease)
	if h.field == "" {
		h.field = id // identifies the holds of a counter
	}
	s.w.log.Write(history.Record{
		T: at, Kind: history.Grant, ID: id, Hold: id, Key: s.key.Name, Owner: h.field,
		Lease: h.lease, Margin: min(h.lease/10, time.Second), Renewed: lease > 0,
		Permits: int64(s.n), Most: int64(s.key.Permits),
	})
	s.w.sampler.add(h)
	return h
}

func (s *permitSession) look(h *sampledHold) {
	if h.permits != nil {
		s.w.auditor.permits(s.key, h)
	}
	s.w.auditor.stock(s.key)
}

func (s *permitSession) give(h *sampledHold) {
	if h.permits != nil && s.chance(s.w.cfg.Habits.Expire) && s.leave("let-expire", h, h.permits.LetExpire) {
		return
	}
	s.w.sampler.remove(h)
	s.w.log.Write(history.Record{Kind: history.Give, Hold: h.id, Op: "release"})
	err := s.made("release", h, func() error {
		if s.chance(s.w.cfg.Habits.Together) {
			go s.w.group.cancelAllIn(s.between(0, 300*time.Microsecond))
		}
		if h.permits != nil {
			return h.permits.Release()
		}
		// A process must release its permits even if it is being drained.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), overhead)
		defer cancel()
		return rsemaphore.New(s.client, s.key.Name).Release(ctx, s.n)
	})
	if h.permits != nil && err == nil {
		s.w.auditor.returned(s.key.Name, h)
	}
}

// counted is a hold of a counter's permits, which ends only when they are released.
type counted struct{}

func (counted) Err() error { return nil }

func (counted) Remaining() time.Duration { return time.Hour }

func (counted) Context(parent context.Context) context.Context { return parent }

// lookAtPermits returns how many of the given permits a semaphore contains, and the shortest of their remaining leases
// in milliseconds.
const lookAtPermits = `local left, n, now = -1, 0, redis.call('TIME')
for i = 1, #ARGV do
  local ends = redis.call('ZSCORE', KEYS[1], (string.gsub(ARGV[i], '..', function(c) return string.char(tonumber(c, 16)) end)))
  if ends then
    local ms = ends - now[1] * 1000 - math.floor(now[2] / 1000)
    if n == 0 or ms < left then left = ms end
    n = n + 1
  end
end
return {n, left}`

const lookAtSemaphore = `return {tonumber(redis.call('GET', KEYS[1]) or '0'), redis.call('ZCARD', KEYS[2])}`

func (a *auditor) permits(key Key, h *sampledHold) {
	at := history.Now()
	if h.hold.Err() != nil {
		return
	}
	until := at + h.hold.Remaining()
	count, ttl, err := a.askOf(key.Name, h)
	if err != nil {
		return
	}
	r := history.Record{T: history.Now(), Kind: history.Audit, Key: key.Name, Hold: h.id, Until: until, TTL: ttl, Count: count}
	if h.hold.Err() == nil {
		r.Depth, r.Exact = int64(len(h.permits.IDs())), true
	}
	a.log.Write(r)
}

func (a *auditor) returned(name string, h *sampledHold) {
	if count, _, err := a.askOf(name, h); err == nil {
		a.log.Write(history.Record{Kind: history.Absent, Key: name, Hold: h.id, Count: count})
	}
}

func (a *auditor) askOf(name string, h *sampledHold) (count int64, ttl time.Duration, err error) {
	args := []any{lookAtPermits, 1, protocol.PermitsKey(name)}
	for _, id := range h.permits.IDs() {
		args = append(args, id)
	}
	return counts(do(a.direct, "EVAL", args...))
}

func (a *auditor) stock(key Key) {
	at := history.Now()
	reply, err := redis.Int64s(do(a.direct, "EVAL", lookAtSemaphore, 2, key.Name, protocol.PermitsKey(key.Name)))
	if err != nil {
		return
	}
	a.log.Write(history.Record{
		T: at, Until: history.Now(), Kind: history.Stock, Key: key.Name,
		Available: reply[0], Count: reply[1], Most: int64(key.Permits), Exact: key.Exact,
	})
}
