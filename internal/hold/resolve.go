package hold

import (
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
)

// inDoubt returns an in-doubt call of the owner, without what undoes it.
func (o *ownership) inDoubt() *engine.InDoubt {
	o.notReusable.Store(true)
	text, _ := o.final.Owner.(string) // always one
	return &engine.InDoubt{Name: o.lock.Name, Owner: text, Lease: o.mayLast()}
}

// discard frees the lock in the background if this owner has it. If it has not, it leaves its
// former place.
func (o *ownership) discard() {
	d := o.inDoubt()
	queue, place := o.formerPlace()
	d.Undo = func(run engine.Run) (bool, error) {
		freed, err := o.undo(run, o.final)
		if err == nil && !freed && queue != nil {
			err = queue.Dequeue(o.lock.Name, place)
		}
		return freed, err
	}
	if queue != nil {
		d.Lasts = max(d.Lease, queue.Lasts(place))
	}
	o.lock.Engine.Resolve(d)
}

// formerPlace returns the queue in which the owner waited before it was granted the lock, nil if
// it did not. A failover that lost the grant may have brought the place back.
func (o *ownership) formerPlace() (Queueing, *acquire.Request) {
	queue, queues := o.lock.Kind.(Queueing)
	wait := o.queuedWith()
	if !queues || wait == nil || o.shared { // a shared one may wait again
		return nil, nil
	}
	place := *o.final
	place.Wait = wait
	return queue, &place
}

// correct brings the count to the number of holds in the background, and ends the change that
// the caller has begun when it is done. Entering, if not nil, has the slot of its outer hold
// until then.
func (o *ownership) correct(entering *Hold) { o.lock.Engine.Resolve(o.correction(entering)) }

// correction is what brings the count to the number of holds. It does not free the lock: the
// caller that gives the last hold up does, and would be told that the lock was lost.
func (o *ownership) correction(entering *Hold) *engine.InDoubt {
	d := o.inDoubt()
	d.Done = func(bool) {
		if entering != nil {
			entering.leaveSlot()
		}
		o.endChange()
	}
	d.Superseded = o.isFreed
	d.Undo = func(run engine.Run) (bool, error) {
		holds, lease := o.owed()
		o.resent.Add(1) // after the count: a hold that has left before it sees this
		r := acquire.Request{Owner: o.final.Owner, Lease: lease.Milliseconds(), Target: holds}
		if o.base == nil {
			r.Target = max(holds, 1)
		}
		_, err := o.undo(run, &r)
		return false, err // what it was about may run yet
	}
	return d
}

// lateRelease is an ownership with a release that no caller waits for any more.
type lateRelease ownership

func (l *lateRelease) Late(any, error) { l.pendingReleases.Add(-1) }

// InDoubt is part of engine.Resolver: it finds out when the release cannot run any more.
func (l *lateRelease) InDoubt() *engine.InDoubt {
	return &engine.InDoubt{Done: func(over bool) {
		if over {
			l.pendingReleases.Add(-1)
		}
	}}
}

// lateReentry is a hold whose re-entry has an outcome that is not known. It is the change of
// the count that is under way.
type lateReentry Hold

func (l *lateReentry) Late(any, error) {
	if o := l.ownership; !o.shared {
		o.correct((*Hold)(l))
	}
}

// InDoubt is part of engine.Resolver. An owner that others may use has a count that is theirs.
func (l *lateReentry) InDoubt() *engine.InDoubt {
	if l.ownership.shared {
		return nil
	}
	return l.ownership.correction((*Hold)(l))
}
