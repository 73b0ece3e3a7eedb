package fairqueue

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// readableKind is a kind of lock whose queue loses its first waiters after it has been read once.
type readableKind struct {
	*fakeKind
	queue []reply.Queued
	lost  int
}

func (k *readableKind) Inspect(c *transport.Call, first, last int64) {
	c.Args = append(c.Args, first, last)
}

func (k *readableKind) Inspected(answer any) (reply.Inspection, error) {
	part, _ := answer.([]any)
	first, _ := part[0].(int64)
	last, _ := part[1].(int64)
	n := int64(len(k.queue))
	in := reply.Inspection{Left: reply.NoTTL, Queue: k.queue[min(first, n):min(last+1, n)], Waiting: n}
	k.queue, k.lost = k.queue[k.lost:], 0
	return in, nil
}

func TestEvictFindsWaiterInShrinkingQueue(t *testing.T) {
	k := &readableKind{fakeKind: kindOf(theLock), lost: 300}
	for i := range 450 {
		k.queue = append(k.queue, reply.Queued{Owner: fmt.Sprint("w", i)})
	}
	e := &Eviction{Kind: k, Owner: "w400", Ask: func(_ context.Context, fill func(*transport.Call)) (any, error) {
		c := &transport.Call{}
		fill(c)
		return c.Args, nil
	}}
	seen, i, next, err := e.find(t.Context())
	require.NoError(t, err)
	require.Equal(t, "w400", seen.Queue[i].Owner)
	require.Equal(t, 100, seen.first+i)
	require.Equal(t, "w0", next)
}
