package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const (
	// idle is how long a lock may lie free in calm times with waiters: some round trips.
	// Without a message they would wait for a heartbeat, a lease or the poll cap.
	idle = 500 * time.Millisecond
	// look is how often a free fair lock with a waiter in front that may be dead is looked at.
	look = time.Second
	// arrival is when a caller has its place in the queue of a fair lock: after it has
	// connected, subscribed, and sent its script twice.
	arrival = 250 * time.Millisecond
	// settle is what the resolving of a call in doubt may take besides a lease.
	settle = 10 * time.Second
)

// judge runs the checks of package history, and those that need a bubble: only there is it
// known what a fault can be blamed for.
func (f *fleet) judge(s *history.Story) []history.Finding {
	findings := s.Judge(history.Limits{Idle: f.idle(), Slack: time.Second, Aftermath: f.aftermath})
	findings = append(findings, f.checkOrder(s)...)
	for _, h := range s.Holds {
		if h.Renewed && h.Cause == "lost" && !disturbed(s, h) {
			findings = append(findings, history.Finding{Check: "needless", What: fmt.Sprintf(
				"%s of %s (%s) was lost at %v, and no fault was near", h.ID, h.Key, h.Owner, h.To)})
		}
	}
	return findings
}

// idle is the limit of this fleet. A client that goes while its acquire is under way can leave
// a place in a fair lock's queue, which is taken out with the next look once the lock is free.
func (f *fleet) idle() time.Duration {
	if len(f.plan.Faults) > 0 && slices.ContainsFunc(f.plan.Keys, func(k key) bool { return k.Fair }) {
		return idle + look
	}
	return idle
}

// disturbed reports whether a fault can be the reason why a hold was lost: the server forgot
// it, or could not be reached in the last third of its lease. What a fault has broken takes
// its client a while to notice.
func disturbed(s *history.Story, h *history.Hold) bool {
	return slices.ContainsFunc(s.Faults, func(f history.Record) bool {
		forgot := f.Key != "" && f.T < h.To
		return f.Until > h.Called && forgot || f.T < h.To && f.Until+2*commandTimeout > h.To-h.Lease/3
	})
}

// checkOrder checks that fair locks are had in the order of the calls, where no fault was near
// and no clock is wrong.
func (f *fleet) checkOrder(s *history.Story) (findings []history.Finding) {
	if slices.ContainsFunc(f.plan.Clients, func(c client) bool { return c.Ahead != 0 }) {
		return nil
	}
	for i, k := range f.plan.Keys {
		if !k.Fair {
			continue
		}
		holds := slices.DeleteFunc(slices.Clone(s.ByKey[keyName(i)]), func(h *history.Hold) bool {
			return h.Outer != "" || s.Calls[h.ID].Op == "resume"
		})
		var passed *history.Hold // of those that were granted later, the one that was called for first
		for _, h := range slices.Backward(holds) {
			if passed != nil && passed.Called+arrival < h.Called && f.calm(s, passed.Called, passed.From) {
				findings = append(findings, history.Finding{Check: "order", What: fmt.Sprintf(
					"%s: %s was called for at %v and granted at %v, %s at %v and %v",
					keyName(i), passed.ID, passed.Called, passed.From, h.ID, h.Called, h.From)})
			}
			if passed == nil || h.Called < passed.Called {
				passed = h
			}
		}
	}
	return findings
}

// calm reports whether no fault has to do with a stretch.
func (f *fleet) calm(s *history.Story, from, to history.Time) bool {
	return !slices.ContainsFunc(s.Faults, func(x history.Record) bool {
		return x.T < to && x.Until+f.aftermath(x, "") > from
	})
}

// aftermath is for how long a fault may have to do with a lock that lies free.
func (f *fleet) aftermath(_ history.Record, _ string) time.Duration {
	return f.longestLease() + 2*commandTimeout + keepAlive + 3*grace
}

// audit records what the server has of a hold that is valid.
func (f *fleet) audit(p *process, h *held) {
	if h.Err() != nil {
		return
	}
	r := history.Record{Kind: history.Audit, Key: h.Name(), Hold: h.id, Until: f.now() + h.Remaining(), Depth: 1}
	// Two commands are much faster than one script, and at one moment as good.
	count, ttl := f.ask("HGET", h.Name(), h.Owner().String()), f.ask("PTTL", h.Name())
	left, ok := ttl.(int64)
	if !ok || h.Err() != nil {
		return // it is loading
	}
	r.TTL = time.Duration(left) * time.Millisecond
	if count != nil {
		r.Count, _ = redis.Int64(count, nil)
	}
	if f.drifted.Load() {
		r.TTL = -1 // the margin is what the drift costs
	}
	p.write(r)
}
