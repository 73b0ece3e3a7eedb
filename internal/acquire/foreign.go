package acquire

import "context"

// foreign returns an error when the key that refused an attempt certainly is that of another
// program: the lock would be waited for in vain. It asks once in an acquisition, and only where
// the refusal gave rise to that. What it cannot find out, for want of a right or of time, it
// takes for a lock, which is what each caller did before it looked.
func (a *Acquisition) foreign(ctx context.Context, o Outcome) error {
	kind, can := a.Kind.(Foreigner)
	if !o.Foreign || !can || a.looked {
		return nil
	}
	a.looked = true
	at := a.Engine.Attempt()
	kind.LookForeign(&at.Call)
	reply, err := at.Run(ctx, nil)
	if err != nil {
		return nil //nolint:nilerr // the lock counts as held
	}
	return kind.Foreign(reply)
}
