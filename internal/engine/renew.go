package engine

import (
	"time"

	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

func slotsOf(t transport.Transport) func(*watchdog.Lease) int {
	cluster, ok := t.(transport.Slotter)
	if !ok {
		return nil
	}
	return func(l *watchdog.Lease) int {
		key, _ := l.Key.(string)
		return cluster.Slot(key)
	}
}

func (e *Engine) renew(leases []*watchdog.Lease, done func([]bool, error)) {
	call := &transport.Call{Urgent: true, Vital: true}
	script := leases[0].Renewal
	script.Fill(call, len(leases), func(i int) (key, owner, ttl any) {
		return leases[i].Key, leases[i].Owner, lease(leases[i])
	})
	began := time.Now()
	e.Transport.Start(call, func(reply any, err error) {
		var held []bool
		if err == nil {
			held, err = renewed(script, reply, len(leases))
		}
		if err != nil {
			held = nil
		}
		e.Hooks.observeRenewal(began, held, leases, err)
		done(held, err)
	})
}

func renewed(script *watchdog.Renewal, reply any, n int) ([]bool, error) {
	held := make([]bool, n)
	for i := range held {
		ok, err := script.Renewed(reply, i, n)
		if err != nil {
			return nil, err
		}
		held[i] = ok
	}
	return held, nil
}

// lease returns the TTL that a renewal sets, in milliseconds. It is the lease that all holds of the same owner need
// and, unless the lease is fixed, at least the lease itself.
func lease(l *watchdog.Lease) any {
	owed := max(l.Holder.Owed(), time.Millisecond)
	if !l.Fixed {
		owed = max(owed, l.TTL)
	}
	if owed == l.TTL {
		return l.TTLArg
	}
	return owed.Milliseconds()
}
