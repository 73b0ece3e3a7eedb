package rlock

import (
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// sharedKey is what the holds of one client that are one tenure have in common:
// the lock, and an owner that others may use, too.
type sharedKey struct {
	kind, key string
	owner     codec.Owner
}

// joinShared returns the tenure of an owner that others may use, too. All of one
// client's holds under that owner share it, however they came about, so that none
// shortens the lease that another counts on. Each join needs a quitShared.
func (l *Lock) joinShared(owner codec.Owner) *tenure {
	t, _ := l.engine.Shared.Join(sharedKey{l.kind(), l.proto.Key(), owner}, func() any {
		return &tenure{lock: l, owner: owner, shared: true, acq: protocol.Acquisition{Owner: owner.String()}}
	}).(*tenure) // it is one
	return t
}

func (t *tenure) quitShared() {
	t.lock.engine.Shared.Leave(sharedKey{t.lock.kind(), t.lock.proto.Key(), t.owner})
}

// drop forgets a hold that came to nothing. One that was entered has left.
func (h *Hold) drop() {
	if h == nil || !h.tenure.shared {
		return
	}
	h.tenure.mu.Lock()
	entered := h.entered
	h.tenure.mu.Unlock()
	if !entered {
		h.tenure.quitShared()
	}
}

// asked returns the hold's acquisition as it is sent: for an owner that has other
// holds here with no shorter lease than these count on.
func (h *Hold) asked() *protocol.Acquisition {
	holds, owed := h.tenure.owed()
	if !h.tenure.shared || holds == 0 {
		return &h.acq
	}
	acq := h.acq
	if owed > h.lease.TTL {
		acq.Lease = owed.Milliseconds()
	}
	return &acq
}

// releaseLater goes on with a shared owner's release that Redis has not answered.
// The latch makes that harmless, for as long as it lives.
func (t *tenure) releaseLater(fill func(*transport.Call), forget func()) {
	e := t.lock.engine
	e.Go(func() {
		err := t.persist(latchSafe, nil, false, fill)
		if unsettled(err) {
			e.Logger.Warn("redlatch: release given up, the lock may stay until its lease ends",
				"lock", t.lock.name, "owner", t.acq.Owner, "error", err)
			return
		}
		forget()
	})
}

// latchSafe is how long a release may be repeated under the protection of its
// latch.
const latchSafe = 10 * time.Second

// queueWith remembers the wait with which the server has queued the owner: the
// callers of one owner have one place, and leave it with the wait that it has.
func (t *tenure) queueWith(wait any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait = wait
}

func (t *tenure) queuedWith() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait
}
