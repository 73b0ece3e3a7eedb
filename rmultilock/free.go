package rmultilock

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// free is the hold.Freer of plain locks of one slot and owner: it repeats one call until the server
// answers, for bound at most, and in the background after that.
func free(holds []*hold.Hold, bound time.Duration) []error {
	locks, owner := make([]*hold.Lock, len(holds)), holds[0].ID().String()
	for i, h := range holds {
		locks[i] = h.Lock()
	}
	scripts := scriptsOf(locks)
	freed, open, err := release(locks[0].Engine, &scripts, owner, bound)
	for again, n := err, 1; locks[0].Engine.DeniedPublish(again) && n < len(locks); n++ {
		// A user without the right to publish frees one lock with each release.
		_, _, again = release(locks[0].Engine, &scripts, owner, bound)
	}
	if err != nil && (engine.Passing(err) || errors.Is(err, engine.ErrUncertain)) {
		locks[0].Engine.Resolve(undo(locks, &scripts, owner, lastsOf(holds)))
	}
	errs := make([]error, len(locks))
	for i := range errs {
		switch {
		case err != nil:
			errs[i] = err
		case !freed[i] && !open: // else an earlier release may have
			errs[i] = engine.ErrLost
		}
	}
	return errs
}

// lastsOf returns for how long any of the locks may last on the server: one may have been entered again
// with a longer lease.
func lastsOf(holds []*hold.Hold) (most time.Duration) {
	for _, h := range holds {
		most = max(most, h.Lasts())
	}
	return most
}

// release repeats the release. Open says that one before the last may have run.
func release(e *engine.Engine, scripts *luasrc.All, owner any, bound time.Duration) (freed []bool, open bool, err error) {
	open, err = e.Persist(bound, func(rest time.Duration) error {
		at := e.Attempt()
		scripts.Release(&at.Call, owner)
		at.Call.Urgent = true
		answer, err := at.RunFor(max(rest, 0), nil)
		if err == nil {
			freed, err = freedOf(answer, len(scripts.Keys))
		}
		return err
	})
	return freed, open, err
}

// freedOf reads the reply of a release of n locks.
func freedOf(answer any, n int) ([]bool, error) {
	parts, _ := answer.([]any)
	if len(parts) != n {
		return nil, fmt.Errorf("%w: a release of %d locks: %T of %d", transport.ErrBadReply, n, answer, len(parts))
	}
	freed := make([]bool, n)
	for i, p := range parts {
		if p != nil && p != int64(1) {
			return nil, fmt.Errorf("%w: a release of several locks: %T", transport.ErrBadReply, p)
		}
		freed[i] = p != nil
	}
	return freed, nil
}
