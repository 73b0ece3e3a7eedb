package show

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// Events of numbers, in addition to package follow: the number exists, or changed for a
// reason other than permits with IDs.
const (
	numberIs      = "number"
	numberChanged = "changed"
)

// numberFollower prints the events of a semaphore or a count-down latch. It is not safe for
// concurrent use.
type numberFollower struct {
	*watcher
	semaphore *rsemaphore.Expirable
	transport transport.Transport

	last     rsemaphore.Inspection
	lastAt   time.Time
	messages int // since the last inspection
}

type numberEvent struct {
	At time.Time `json:"at"`
	inspect.Named
	Event string `json:"event"`
	// Permit is the permit's ID.
	Permit string `json:"permit,omitempty"`
	// Available is the number, nil for none. Taken counts the permits in use.
	Available *int `json:"available"`
	Taken     int  `json:"taken"`
	// Before is the number before a change.
	Before   *int `json:"before,omitempty"`
	Messages int  `json:"messages"`
}

// numberOf returns a follower if the name holds a number, else nil.
func (w *watcher) numberOf(ctx context.Context, client *redlatch.Client) *numberFollower {
	f := &numberFollower{
		watcher: w, semaphore: rsemaphore.NewExpirable(client, w.pattern), transport: engine.EngineOf(client).Transport,
	}
	in, err := f.semaphore.Inspect(ctx)
	if err != nil || !in.Exists {
		return nil // the follower of locks reports the error
	}
	return f
}

// run inspects the number after each message and once a second, until ctx ends.
func (f *numberFollower) run(ctx context.Context) error {
	var permits, latch <-chan transport.Event // nil if not subscribed
	for channel, events := range map[string]*<-chan transport.Event{
		codec.SemaphoreChannel(f.pattern): &permits, codec.CountDownChannel(f.pattern): &latch,
	} {
		sub, err := f.transport.Subscribe(ctx, channel)
		if err != nil {
			f.message("its messages are not heard, it is looked at each second: %v", err)
			continue
		}
		defer sub.Close()
		*events = sub.Events()
	}
	if err := f.look(ctx); err != nil {
		return f.srv.Problem(err)
	}
	next := time.NewTimer(inspect.Interval)
	defer next.Stop()
	for {
		var works bool
		select {
		case <-ctx.Done():
			return nil
		case _, works = <-permits:
			if f.messages++; !works {
				permits = nil // inspections go on
			}
		case _, works = <-latch:
			if f.messages++; !works {
				latch = nil
			}
		case <-next.C:
		}
		err := f.look(ctx)
		switch {
		case ctx.Err() != nil: // --for is over
		case errors.Is(err, redlatch.ErrWrongType):
			return inspect.WrongType(ctx, f.srv, f.pattern)
		case err != nil:
			f.looked(f.srv.Problem(err))
		default:
			f.looked(nil)
		}
		next.Reset(inspect.Interval)
	}
}

func (f *numberFollower) look(ctx context.Context) error {
	in, err := f.semaphore.Inspect(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, e := range changesOf(&f.last, in, now.Sub(f.lastAt)) {
		e.At, e.Named, e.Taken, e.Messages = now.UTC(), inspect.NameOf(f.pattern), in.Taken, f.messages
		if in.Exists {
			e.Available = &in.Available
		}
		f.emit(e, fmt.Sprintf("%s %-8s  %s", e.At.Format("15:04:05.000Z"), e.Event, e.words()))
	}
	f.last, f.lastAt, f.messages = *in, now, 0
	return nil
}

func (e *numberEvent) words() string {
	if e.Available == nil {
		return "there is no number any more: a latch is open, and a semaphore is deleted"
	}
	said := fmt.Sprintf("%d available, %d taken", *e.Available, e.Taken)
	switch {
	case e.Permit != "":
		return "permit " + e.Permit + ", " + said
	case e.Before != nil:
		return fmt.Sprintf("%s, it was %d", said, *e.Before)
	}
	return said
}

// slack is how much earlier than expected a lease may end: the answer took time to arrive.
const slack = 100 * time.Millisecond

// changesOf returns the events between two inspections. before is zero for the first one.
func changesOf(before, now *rsemaphore.Inspection, passed time.Duration) (all []numberEvent) {
	switch {
	case !now.Exists && !before.Exists:
		return nil
	case !now.Exists:
		return []numberEvent{{Event: follow.Gone}}
	case !before.Exists:
		return []numberEvent{{Event: numberIs}}
	}
	expected := before.Available
	if !isCut(before) && !isCut(now) { // otherwise some permits are unknown
		all = permitChanges(before, now, passed)
		expected += before.Taken - now.Taken
	}
	if now.Available != expected {
		all = append(all, numberEvent{Event: numberChanged, Before: &before.Available})
	}
	return all
}

func isCut(in *rsemaphore.Inspection) bool { return in.Taken > len(in.Permits) }

// permitChanges returns the permits that were released, expired or acquired.
func permitChanges(before, now *rsemaphore.Inspection, passed time.Duration) (all []numberEvent) {
	for _, p := range before.Permits {
		switch {
		case hasPermit(now, p.ID):
		case p.Left >= 0 && p.Left <= passed+slack:
			all = append(all, numberEvent{Event: follow.Expired, Permit: p.ID})
		default:
			all = append(all, numberEvent{Event: follow.Released, Permit: p.ID})
		}
	}
	for _, p := range now.Permits {
		if !hasPermit(before, p.ID) {
			all = append(all, numberEvent{Event: follow.Taken, Permit: p.ID})
		}
	}
	return all
}

func hasPermit(in *rsemaphore.Inspection, id string) bool {
	return slices.ContainsFunc(in.Permits, func(p rsemaphore.Permit) bool { return p.ID == id })
}
