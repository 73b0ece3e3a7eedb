package repair

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
)

// EvictAll evicts those of owners that have no subscriber from their places in a queue. It returns
// them, the first in the queue first, without who comes next, and the owner that was woken, "" for
// none. The effect is that of [admin.Evict] for one after the other, the last in the queue first; the
// server does not read the whole queue for each.
func EvictAll(ctx context.Context, client *redlatch.Client, at inspect.Part, owners []string) ([]admin.Waiter, string, error) {
	l := rfairlock.New(client, at.Name).Internal()
	kind, _ := l.Kind.(fairqueue.Inspected) // a fair lock's is one
	err := l.Check(ctx)
	var done *fairqueue.Evictions
	if err == nil {
		e := fairqueue.Eviction{Queues: fairqueue.Of(l.Engine), Kind: kind, Ask: l.Ask}
		done, err = e.All(ctx, owners, at.Last)
	}
	if err != nil {
		return nil, "", &redlatch.LockError{Op: "evict", Name: at.Name, Err: err}
	}
	out := make([]admin.Waiter, len(done.Out))
	for i, o := range done.Out {
		owner, _ := redlatch.ParseOwner(o.Was.Owner) // the zero Owner for a text of another shape
		out[len(out)-1-i] = admin.Waiter{Owner: owner, Text: o.Was.Owner, Position: o.Index + 1, Deadline: o.Was.Deadline, Counted: true}
	}
	return out, done.Woken, nil
}
