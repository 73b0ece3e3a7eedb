package engine

import (
	"errors"
	"time"
)

// Persist makes attempts until one has an answer, or an error that no repetition helps against, for
// bound at most. Try gets what is left of bound. Open says that an attempt before the last may have
// done something. A caller that may run when the client is closed must have joined the engine.
func (e *Engine) Persist(bound time.Duration, try func(rest time.Duration) error) (open bool, err error) {
	began, rest := time.Now(), bound
	var pause Backoff
	for {
		err = try(rest)
		switch {
		case err == nil:
			return open, nil
		case errors.Is(err, ErrUncertain):
			open = true
		case !Passing(err):
			return open, err
		}
		d := pause.Next()
		if time.Since(began)+d >= bound || !e.Wait(d) {
			return open, notSentSince(began, err)
		}
		rest = bound - time.Since(began)
	}
}
