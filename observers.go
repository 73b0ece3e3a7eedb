package redlatch

import "context"

// Observers returns an observer that passes each event on to all of those given, in their order, those
// that have no use for contexts last.
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
		if in, can := o.(ContextObserver); can {
			m.in = append(m.in, in)
		} else {
			m.plain = append(m.plain, o)
		}
	}
	if len(m.in) == 0 {
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
	all   plainMany
	in    []ContextObserver // those with
	plain plainMany         // and those without
}

// Observe is part of Observer.
func (m *many) Observe(event Event) { m.all.Observe(event) }

// ObserveContext is part of ContextObserver.
func (m *many) ObserveContext(ctx context.Context, event Event) context.Context {
	for _, in := range m.in {
		if next := in.ObserveContext(ctx, event); next != nil {
			ctx = next
		}
	}
	if len(m.plain) > 0 && isPlain(event) {
		m.plain.Observe(event)
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
