package oracle

import (
	"maps"
	"slices"

	"github.com/redlatch/redlatch/codec"
)

// queueState is the queue of a fair lock with its deadlines.
type queueState struct {
	waiters   []string
	deadlines map[string]float64
}

// queueState returns the queue as a step finds it when it has removed dead waiters. It is not ok
// when a key is of another type.
func (o *Outcome) queueState() (l queueState, ok bool) {
	l, ok = queueStateOf(o.Prior, o.name())
	for ok && len(l.waiters) > 0 {
		deadline, has := l.deadlines[l.waiters[0]]
		if !has || deadline > float64(o.Step.Now) {
			break
		}
		delete(l.deadlines, l.waiters[0])
		l.waiters = l.waiters[1:]
	}
	return l, ok
}

// queueStateOf reads a lock's queue.
func queueStateOf(s State, name string) (l queueState, ok bool) {
	queue, inQueue := s[codec.QueueKey(name)]
	timeouts, inTimeouts := s[codec.TimeoutKey(name)]
	waiters, isList := queue.Value.([]string)
	deadlines, isSet := timeouts.Value.(map[string]float64)
	l = queueState{slices.Clone(waiters), maps.Clone(deadlines)}
	return l, inQueue == isList && inTimeouts == isSet
}

// isSpoilt reports whether a script that looks for dead waiters fails: the queue is no
// list, or it is not empty and the timeouts are no sorted set.
func (o *Outcome) isSpoilt() bool {
	l, ok := queueStateOf(o.Prior, o.name())
	_, isList := o.Prior[codec.QueueKey(o.name())].Value.([]string)
	_, there := o.Prior[codec.QueueKey(o.name())]
	return !ok && (there && !isList || len(l.waiters) > 0)
}

// head returns the first in the queue, or another.
func (l queueState) head(other string) string {
	if len(l.waiters) == 0 {
		return other
	}
	return l.waiters[0]
}

// lacks reports whether a waiter in the queue has no deadline.
func (l queueState) lacks(waiter string) bool {
	_, has := l.deadlines[waiter]
	return !has
}

// onlyPruned reports whether our side has removed dead waiters, and nothing else from the
// queue.
func (o *Outcome) onlyPruned() bool {
	want, ok1 := o.queueState()
	got, ok2 := queueStateOf(o.Ours.After, o.name())
	if !ok1 {
		name := o.name()
		return o.Prior.same(o.Ours.After, codec.QueueKey(name)) && o.Prior.same(o.Ours.After, codec.TimeoutKey(name))
	}
	return ok2 && slices.Equal(want.waiters, got.waiters) && maps.Equal(want.deadlines, got.deadlines)
}

// wakeUps is what a release that frees the lock publishes: a message for the first in the
// queue.
func (o *Outcome) wakeUps() []string {
	l, _ := o.queueState()
	if len(l.waiters) == 0 {
		return []string{}
	}
	return []string{o.wakeUp(l.waiters[0])}
}

// wakeUp is the message for a waiter, as the oracle receives it.
func (o *Outcome) wakeUp(waiter string) string {
	return codec.OwnerChannel(o.name(), waiter) + " " + codec.MessageUnlock
}

// isAboutFair tells whether a difference is about the step's lock or its queue.
func (o *Outcome) isAboutFair(d Diff) bool {
	return o.isAbout(d) || d.Key == codec.QueueKey(o.name()) || d.Key == codec.TimeoutKey(o.name())
}
