package board

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// details reads what belongs to the lock but is not part of it. What cannot be read is left
// out; a connection that is broken has the error of the next look.
func (w *watcher) details(ctx context.Context, now *Lock) {
	var owners []string
	for i := range now.Holders {
		owners = append(owners, now.Holders[i].Owner)
	}
	for i := range now.Queue {
		owners = append(owners, now.Queue[i].Owner)
	}
	labels, err := listing.Labels(w.conn, owners)
	if err != nil {
		return
	}
	for i := range now.Holders {
		now.Holders[i].Label = labels[now.Holders[i].Owner]
	}
	for i := range now.Queue {
		now.Queue[i].Label = labels[now.Queue[i].Owner]
	}
	now.Token, _ = listing.Token(w.conn, w.name) // 0 when it is unknown
	now.Kind = now.Kind.WithToken(now.Token)
	if now.Kind == listing.ReadWrite {
		inspect.ReadLeases(w.conn, w.name, now.Holders)
	}
	w.listeners(ctx, now)
}

// listeners counts those that listen to the channels of the lock.
func (w *watcher) listeners(ctx context.Context, now *Lock) {
	plain, readWrite := codec.LockChannel(w.name), codec.ReadWriteChannel(w.name)
	counts, err := connect.Listening(ctx, w.conn, plain, readWrite)
	if err != nil {
		if now.Uncounted == "" {
			now.Uncounted = inspect.NotCounted(err)
		}
		return
	}
	switch isReadWrite := now.Kind == listing.ReadWrite; {
	case isReadWrite:
		now.Listening, now.PlainWaiters = counts[1], counts[0]
	case now.Waiting > 0:
		now.PlainWaiters = counts[0]
	case now.Held():
		now.Listening = counts[0]
	}
	if now.Held() && now.Kind != listing.ReadWrite {
		now.ReadWriteWaiters = counts[1]
	}
}

// happened notes what has happened since the look before.
func (w *watcher) happened(in *admin.Inspection, shape *listing.Shape, now *Lock) {
	events := w.lock.Look(stateOf(in, shape, now.At))
	labels := map[string]string{}
	for i := range now.Holders {
		labels[now.Holders[i].Owner] = now.Holders[i].Label
	}
	for i := range now.Queue {
		labels[now.Queue[i].Owner] = now.Queue[i].Label
	}
	for i := range w.last.Holders {
		if h := &w.last.Holders[i]; labels[h.Owner] == "" {
			labels[h.Owner] = h.Label
		}
	}
	for _, e := range events {
		if w.first && w.told(&e, now) {
			continue
		}
		w.events = append([]Event{{Event: e, Label: labels[e.Owner]}}, w.events...)
	}
	w.events = w.events[:min(len(w.events), shownEvents)]
	now.Events = slices.Clone(w.events)
	again := slices.ContainsFunc(events, func(e follow.Event) bool { return e.What == follow.Passed && e.From == e.Owner })
	now.Ages = w.seen.ages.sees(w.name, &look{
		at: now.At, holders: shape.Holders, shared: now.Kind == listing.ReadWrite, ttl: now.TTL, token: now.Token, anew: again,
	})
	now.Age = oldest(now.Ages)
}

// told reports whether the events say already what the first look for viewers has found.
func (w *watcher) told(e *follow.Event, now *Lock) bool {
	switch {
	case w.last.At.IsZero():
		return false
	case e.What == follow.Held:
		return sameOwners(now.Holders, w.last.Holders)
	}
	return e.What == follow.Free && !w.last.Held()
}

// stateOf is a lock as it was seen.
func stateOf(in *admin.Inspection, shape *listing.Shape, at time.Time) follow.State {
	s := follow.State{At: at, Lease: in.TTL, Waiting: in.Waiting, Mode: shape.Mode}
	for i, h := range shape.Holders {
		if i == 0 {
			s.Owner, s.Count = h.Owner, h.Count
			continue
		}
		s.Others = append(s.Others, follow.Holder{Owner: h.Owner, Count: h.Count})
	}
	for _, q := range in.Queue {
		s.Queue = append(s.Queue, q.Text)
	}
	return s
}
