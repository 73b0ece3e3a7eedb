package redlatch

import "context"

// Observers returns an observer that passes each event on to all of those given, in their order.
// The values that a [ContextObserver] among them adds to a context are seen by those after it,
// and by the function of Do. Nil ones are left out. A panic in one keeps the event from those
// after it.
func Observers(all ...Observer) Observer {
	m := &many{}
	for _, o := range all {
		if o == nil {
			continue
		}
		m.all = append(m.all, o)
		if _, can := o.(ContextObserver); can {
			m.in++
		}
	}
	if m.in == 0 {
		return plainMany(m.all)
	}
	return m
}

// plainMany are observers of which none has a use for contexts.
type plainMany []Observer

// Observe is part of Observer.
func (m plainMany) Observe(event Event) {
	for _, o := range m {
		o.Observe(event)
	}
}

// many are observers, some with contexts.
type many struct {
	all []Observer
	in  int // how many are with contexts
}

// Observe is part of Observer.
func (m *many) Observe(event Event) { plainMany(m.all).Observe(event) }

// ObserveContext is part of ContextObserver.
func (m *many) ObserveContext(ctx context.Context, event Event) context.Context {
	known := isPlain(event)
	for _, o := range m.all {
		in, can := o.(ContextObserver)
		switch {
		case can:
			if next := in.ObserveContext(ctx, event); next != nil {
				ctx = next
			}
		case known:
			o.Observe(event)
		}
	}
	return ctx
}

// isPlain reports whether an observer without contexts receives the event.
func isPlain(event Event) bool {
	switch event.(type) {
	case Opened, Closed, Started, Attempted, Queued, Woken, DoStarted, DoEnded:
		return false
	}
	return true
}
