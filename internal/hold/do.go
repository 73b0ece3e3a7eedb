package hold

import (
	"context"
	"errors"
)

// Do runs fn with the context of h, a public hold of the subject, and gives h up, also when fn
// panics. An error of giving up is joined to fn's.
func Do(ctx context.Context, s Subject, h interface {
	Context(parent context.Context) context.Context
	Unlock() error
}, fn func(ctx context.Context) error) (err error) {
	defer func() {
		// Joined, not replaced: the caller's own error comes first.
		if unlockErr := h.Unlock(); unlockErr != nil {
			err = errors.Join(err, unlockErr)
		}
	}()
	return s.run(h.Context(ctx), fn)
}
