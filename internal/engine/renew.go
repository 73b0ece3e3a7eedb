package engine

import (
	"time"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// group returns how leases are grouped into renewal scripts: by hash slot in a
// cluster, else all together.
func (e *Engine) group() func(*watchdog.Lease) int {
	cluster, ok := e.Transport.(transport.Slotter)
	if !ok {
		return nil
	}
	return func(l *watchdog.Lease) int {
		key, _ := l.Key.(string) // always one
		return cluster.Slot(key)
	}
}

// renew sends one renewal script for the leases.
func (e *Engine) renew(leases []*watchdog.Lease, done func([]bool, error)) {
	call := &transport.Call{Urgent: true, Vital: true}
	luasrc.FillRenew(call, len(leases), func(i int) (key, owner, ttl any) {
		return leases[i].Key, leases[i].Owner, lease(leases[i])
	})
	began := time.Now()
	e.Transport.Start(call, func(reply any, err error) {
		var held []bool
		if err == nil {
			held, err = renewed(reply, len(leases))
		}
		if err != nil {
			held = nil
		}
		e.observeRenewal(began, held, len(leases), err)
		done(held, err)
	})
}

func renewed(answer any, n int) ([]bool, error) {
	held := make([]bool, n)
	for i := range held {
		ok, err := reply.RenewedAt(answer, i, n)
		if err != nil {
			return nil, err
		}
		held[i] = ok
	}
	return held, nil
}

// lease returns the time to live that a renewal sets, in milliseconds: what is
// owed to the lease, and to a longer one of the same owner.
func lease(l *watchdog.Lease) any {
	owed := l.TTL
	if l.Least != nil {
		owed = max(owed, time.Duration(l.Least.Load()))
	}
	if l.Floor != nil {
		if floor := l.Floor.Load(); !floor.IsZero() {
			owed = max(owed, floor.Remaining(time.Now()))
		}
	}
	if owed == l.TTL {
		return l.TTLArg
	}
	return owed.Milliseconds()
}
