package acquire

import (
	"context"

	"github.com/redlatch/redlatch/internal/engine"
)

// foreign returns an error when the key that refused an attempt certainly is that of another
// program: the lock would be waited for in vain. It asks once in an acquisition, and only where
// the refusal gave rise to that. What it cannot find out, for want of a right or of time, it
// takes for a lock.
func (a *Acquisition) foreign(ctx context.Context) error {
	kind, can := a.Kind.(Foreigner)
	if !a.suspect || !can || a.looked {
		return nil
	}
	a.looked = true
	at := a.Engine.Attempt()
	kind.LookForeign(&at.Call)
	reply, err := at.Run(ctx, nil)
	if err != nil {
		return nil //nolint:nilerr // the lock counts as held
	}
	if field, foreign := kind.Foreign(reply); foreign {
		return engine.Foreign(field)
	}
	return nil
}
