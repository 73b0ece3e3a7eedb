package acquire

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Alone returns how a caller waits without a queue: it asks Redis, and listens for itself. It is
// for owners that are given: two callers of one owner do not exclude each other.
func Alone() Waiter { return &lone{} }

// lone is a caller that waits alone.
type lone struct{ sub transport.Subscription }

func (*lone) Enter(context.Context, *Acquisition) (bool, error) { return false, nil }

func (w *lone) Listen(ctx context.Context, a *Acquisition) (err error) {
	if w.sub == nil {
		w.sub, err = a.Subscribe(ctx, a.Kind.Channel(a.Claim().Request().Owner))
	}
	return err
}

func (w *lone) Signals() (<-chan transport.Event, <-chan struct{}) {
	if w.sub == nil {
		return nil, nil
	}
	return w.sub.Events(), nil
}

func (*lone) OnEvent(a *Acquisition, e transport.Event) (ask bool, d time.Duration) {
	a.ObserveGap(e)
	return true, 0
}

func (*lone) Woken() (bool, time.Duration) { return true, 0 }
func (w *lone) Broken() error              { return w.sub.Err() }

func (*lone) Refused(_ *Acquisition, o Outcome) time.Duration { return o.TTL }
func (*lone) Sleep(nap, _ time.Duration) time.Duration        { return nap }
func (*lone) Unanswered(error)                                {}
func (*lone) Abandon()                                        {}
func (w *lone) Granted(*Acquisition)                          { w.close() }
func (w *lone) Leave(*Acquisition)                            { w.close() }

func (w *lone) close() {
	if w.sub != nil {
		w.sub.Close()
	}
}
