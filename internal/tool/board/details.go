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
	readWrite := now.Kind == listing.ReadWrite
	if readWrite {
		inspect.ReadLeases(w.conn, w.name, now.Holders)
	}
	if now.Waiting > 0 || readWrite {
		now.PlainWaiters = w.listening(ctx, codec.LockChannel(w.name))
	}
	if now.Held() && !readWrite {
		now.ReadWriteWaiters = w.listening(ctx, codec.ReadWriteChannel(w.name))
	}
}

// listening returns how many connections listen to a channel, 0 when that is
// unknown.
func (w *watcher) listening(ctx context.Context, channel string) int64 {
	counts, err := connect.Listening(ctx, w.conn, channel)
	if err != nil {
		return 0
	}
	return counts[0]
}

// happened notes what has happened since the look before.
func (w *watcher) happened(in *admin.Inspection, shape *listing.Shape, now *Lock) {
	first := w.last.At.IsZero()
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
		w.events = append([]Event{{Event: e, Label: labels[e.Owner]}}, w.events...)
	}
	w.events = w.events[:min(len(w.events), shownEvents)]
	now.Events = slices.Clone(w.events)
	now.Since, now.Exact = now.At, !first
	if slices.ContainsFunc(events, func(e follow.Event) bool { return e.What == follow.Passed }) {
		return // also to the owner that had it
	}
	if sameOwners(now.Holders, w.last.Holders) {
		now.Since, now.Exact = w.last.Since, w.last.Exact
	}
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
