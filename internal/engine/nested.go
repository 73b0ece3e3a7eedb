package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
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

// OuterOf returns the owners of the holds that ctx is inside.
func OuterOf(ctx context.Context) []string {
	owners, _ := ctx.Value(OuterKey{}).([]string)
	return owners
}

type nested struct {
	engine *Engine
	number int64
	kind   string
	key    string
	outer  []string
	timer  *time.Timer
	over   chan struct{}
}

func newNested(e *Engine, kind, key string, outer []string) *nested {
	slices.Sort(outer)
	outer = slices.DeleteFunc(slices.Compact(outer), func(owner string) bool {
		_, err := codec.ParseOwner(owner)
		return err != nil
	})
	n := &nested{
		engine: e, number: e.waits.Add(1), kind: kind, key: key, outer: outer[:min(len(outer), mostOuter)], over: make(chan struct{}),
	}
	n.timer = time.AfterFunc(nestedAfter, func() { e.Go(n.run) })
	return n
}

func (n *nested) end() {
	n.timer.Stop()
	close(n.over)
}

func (n *nested) run() {
	n.engine.Join() // the deletion belongs to the wait
	defer n.engine.Leave()
	for beat := 1; ; beat++ {
		text := fmt.Sprintf(NestedFormat, n.engine.ClientID, n.number, beat, n.kind, n.key)
		err := n.each("SET", text, "PX", nestedLife.Milliseconds())
		pause := nestedEvery
		if transport.IsCode(err, "NOPERM") { // each attempt would be in the server's ACL LOG
			pause = math.MaxInt64
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-n.over:
			timer.Stop()
			if err == nil {
				_ = n.each("DEL")
			}
			return
		}
	}
}

func (n *nested) each(command string, args ...any) error {
	for _, owner := range n.outer {
		if err := n.engine.label.send(context.Background(), command, append([]any{NestedKey(owner)}, args...)...); err != nil {
			return err
		}
	}
	return nil
}
