package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/clock"
)

// A wait inside a hold keeps the hold from ending, which can close a circle of waits. The server knows only the waiters
// for fair locks, and not the holds that they are inside, so a client announces such waits. It writes its ID, the
// wait's number, a write counter and the lock to the label key of each outer owner. No decision depends on an
// announcement.
const (
	nestedAfter = 5 * time.Second // shorter waits are not announced
	nestedEvery = 3 * time.Second // between two writes
	nestedLife  = 10 * time.Second
	// mostOuter is the maximum number of keys per wait.
	mostOuter = 16
)

// MaxNested is the maximum length of an announcement that is read, in bytes.
const MaxNested = 1024

// NestedKey returns the key for waits inside an owner's holds. owner is as stored in Redis, but without a writer's
// suffix.
func NestedKey(owner string) string { return "redlatch:label:" + owner }

// NestedFormat formats the client's ID, the wait's number, the write counter, the kind and the lock's key.
const NestedFormat = "%s %d %d %s %s"

// lockKinds have one key, which contains its holders.
var lockKinds = map[string]bool{"plain": true, "fair": true, "fenced": true, "fair-fenced": true, "read": true, "write": true}

// OuterKey is the context key for the owners of a context's holds, a []string.
type OuterKey struct{}

// OuterOf returns the owners of the holds that ctx is inside, as far as they are live.
func OuterOf(ctx context.Context) []string {
	owners, _ := ctx.Value(OuterKey{}).([]string)
	return owners
}

func (e *Engine) outerOf(ctx context.Context) []string {
	outer := slices.Concat(OuterOf(ctx), e.Outer)
	slices.Sort(outer)
	outer = slices.DeleteFunc(slices.Compact(outer), func(owner string) bool {
		_, err := codec.ParseOwner(owner)
		return err != nil
	})
	return outer[:min(len(outer), mostOuter)]
}

type nested struct {
	engine *Engine
	number int64
	kind   string
	key    string
	ctx    context.Context //nolint:containedctx // ends with the wait; the holds that it is inside may end before
	stop   context.CancelFunc
	outer  []string // the owners in Engine.announced that have this wait; guarded by Engine.waitMu
	timer  *time.Timer
}

func newNested(ctx context.Context, e *Engine, kind, key string) *nested {
	n := &nested{engine: e, number: e.waits.Add(1), kind: kind, key: key}
	n.ctx, n.stop = e.Open(ctx)
	n.timer = time.AfterFunc(nestedAfter, func() { e.Go(n.run) })
	return n
}

func (n *nested) end() {
	n.timer.Stop()
	n.stop()
}

// run announces the wait until it ends or the client begins to close, which ends all waits.
func (n *nested) run() {
	n.engine.Join() // the deletion belongs to the wait
	defer n.engine.Leave()
	label := &n.engine.label
	for beat := 1; n.ctx.Err() == nil; beat++ {
		first, left := n.move(n.engine.outerOf(n.ctx))
		text := fmt.Sprintf(NestedFormat, n.engine.ClientID, n.number, beat, n.kind, n.key)
		label.each(left, label.remove)
		label.each(first, func(key string) error {
			return label.send(n.ctx, "SET", key, text, "PX", nestedLife.Milliseconds())
		})
		clock.Sleep(n.ctx, nestedEvery)
	}
	_, left := n.move(nil)
	label.each(left, label.remove)
}

// move makes outer the owners that the wait is inside. Only the oldest wait inside an owner is announced: first are the
// owners whose oldest one this is, and left are those that no longer have any.
func (n *nested) move(outer []string) (first, left []string) {
	e := n.engine
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	for _, owner := range n.outer {
		if slices.Contains(outer, owner) {
			continue
		}
		e.announced[owner] = slices.DeleteFunc(e.announced[owner], func(other *nested) bool { return other == n })
		if len(e.announced[owner]) == 0 {
			delete(e.announced, owner)
			left = append(left, owner)
		}
	}
	for _, owner := range outer {
		if !slices.Contains(n.outer, owner) {
			e.announced[owner] = append(e.announced[owner], n)
		}
		if e.announced[owner][0] == n {
			first = append(first, owner)
		}
	}
	n.outer = outer
	return first, left
}

// each calls f for each owner's key until a call fails, unless the user may not write labels.
func (l *label) each(owners []string, f func(key string) error) {
	for _, owner := range owners {
		if l.denied.Load() || f(NestedKey(owner)) != nil {
			return
		}
	}
}
