package engine

// Slot is a place that every engine has for the state of one strategy of waiting, which the
// engine knows nothing of. Declare one for each strategy, as a package variable.
type Slot[T any] struct {
	// Make returns the state for an engine. It must have no effect until the state is
	// used: of several made at the same time one is kept.
	Make func(e *Engine) T
}

// Of returns what an engine has in the slot. It is safe for concurrent use.
func (s *Slot[T]) Of(e *Engine) T {
	value, ok := e.slots.Load(s)
	if !ok {
		value, _ = e.slots.LoadOrStore(s, s.Make(e))
	}
	state, _ := value.(T) // it is one
	return state
}
