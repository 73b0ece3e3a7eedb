package mixed

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// permit is the only permit of a semaphore, as a lock.
var permit = locksuite.Kind{Name: "permits", New: func(c *redlatch.Client, name string) *rlock.Lock {
	l := &rlock.Lock{}
	*l.Internal() = *rsemaphore.NewExpirable(c, name).Internal()
	return l
}}

// permitLease is that of Redisson's permits that are held until they are given back: it renews none.
const permitLease = 10 * time.Minute

// isPermit reports whether parties meet on a permit.
func (l target) isPermit() bool { return l.kind.Name == permit.Name }

// supply makes the semaphore where a target is a permit.
func (p *place) supply(t *testing.T, l target) {
	t.Helper()
	if l.isPermit() {
		p.cluster.Do(t, "SET", l.name, 1)
	}
}

// acquires is Redisson's call that takes a permit.
func acquires(method string, args ...any) peer.Command {
	return peer.Command{"op": "call", "method": method, "args": append(args, "ms")}
}

// gives is how a Redisson client gives a permit back.
func (j *javaParty) gives(l target, id string) held {
	return func(t *testing.T) time.Time {
		t.Helper()
		return j.do(t, l, peer.Command{"op": "call", "method": "release", "args": []any{id}}).Began()
	}
}

// takePermit takes a permit that is available.
func (j *javaParty) takePermit(t *testing.T, l target, lease time.Duration) held {
	t.Helper()
	if lease == 0 {
		lease = permitLease
	}
	var id string
	require.NoError(t, j.do(t, l, acquires("acquire", lease.Milliseconds())).Into(&id))
	return j.gives(l, id)
}

// waitForPermit begins to wait for a permit.
func (j *javaParty) waitForPermit(l target) <-chan taken {
	call := j.begin(l, acquires("acquire", permitLease.Milliseconds()))
	came := make(chan taken, 1)
	go func() {
		reply, err := call.Wait(atMost)
		var id string
		if err == nil {
			err = reply.Into(&id)
		}
		came <- taken{at: reply.Ended(), free: j.gives(l, id), err: err}
	}()
	return came
}

// permitWorker is javaWorker for a permit.
func permitWorker(j *javaParty, l target) worker {
	l.thread = "-" + l.kind.Name + l.name
	w := worker{who: j.title() + ", " + j.client + ", " + l.kind.Name + " " + l.name, library: j.library(), lock: l.name, theirs: true}
	w.once = func(context.Context) (turn, error) {
		got, err := j.begin(l, acquires("tryAcquire", turnLease.Milliseconds(), turnLease.Milliseconds())).Wait(2 * atMost)
		var id string
		if err == nil {
			err = got.Into(&id)
		}
		if err == nil && id == "" {
			err = redlatch.ErrNotAcquired
		}
		if err != nil {
			return turn{}, err
		}
		<-time.After(turnTime)
		back, err := j.begin(l, peer.Command{"op": "call", "method": "release", "args": []any{id}}).Wait(2 * atMost)
		// Its lease began before it was told so.
		had := turn{who: w.who, from: got.Ended(), to: got.Began().Add(turnLease)}
		if began := back.Began(); !began.After(had.to) {
			had.to = began
		}
		return had, err
	}
	return w
}
