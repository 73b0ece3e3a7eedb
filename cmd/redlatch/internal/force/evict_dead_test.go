package force

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestDeadWaitersAreEvictedInParts(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for i := range 250 {
		program.Enqueue(t, s, name, program.LongOwner(i), time.Hour)
	}
	for _, i := range []int{60, 149, 249} {
		program.Listen(t, s, name, program.LongOwner(i))
	}
	done, err := (&allDead{atOnce: 100}).evict(t.Context(), program.Open(t, s), name)
	require.NoError(t, err)
	require.Equal(t, []string{program.LongOwner(60), program.LongOwner(149), program.LongOwner(249)}, program.QueueOf(t, s, name))
	require.Equal(t, 247, done.EvictedCount)
	require.Equal(t, 3, done.QueueLength)
	require.Equal(t, program.LongOwner(60), done.Next.Owner)
	require.True(t, done.Next.Notified)
	for i := 1; i < len(done.Evicted); i++ {
		require.Less(t, done.Evicted[i-1].Position, done.Evicted[i].Position)
	}
}

// The last part wakes the first waiter, and the parts in front of it have no dead one.
func TestEvictRemembersWakeUpOfEarlierPart(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for i := range 6 {
		program.Enqueue(t, s, name, program.LongOwner(i), time.Hour)
		if i < 5 {
			program.Listen(t, s, name, program.LongOwner(i))
		}
	}
	done, err := (&allDead{atOnce: 2}).evict(t.Context(), program.Open(t, s), name)
	require.NoError(t, err)
	require.Equal(t, 1, done.EvictedCount)
	require.True(t, done.Next.Notified)
}

func TestEvictReportsWhatWasDoneBeforeFailure(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for i := range 4 {
		program.Enqueue(t, s, name, program.LongOwner(i), time.Hour)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := &allDead{atOnce: 2, look: time.Hour}
	out := &allEvicted{}
	_, err := (&allDead{}).evictAt(ctx, program.Open(t, s), inspect.Part{Name: name, First: 3, Last: 4}, out)
	require.NoError(t, err)
	cancel()
	_, err = a.evictAt(ctx, program.Open(t, s), inspect.Part{Name: name, First: 1, Last: 2}, out)
	require.ErrorIs(t, a.failed(name, out, err), context.Canceled)
	require.ErrorContains(t, a.failed(name, out, err), "after 2 waiters of lock \""+name+"\" were evicted: ")
	require.ErrorContains(t, a.failed(name, out, admin.ErrNotCounted), "evicted: lock")
	require.NoError(t, a.failed(name, out, nil))
}

func TestEvictOfNoneIsEmptyListInJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	program.Listen(t, s, name, program.RedissonOwner)
	done, err := (&allDead{atOnce: 100}).evict(t.Context(), program.Open(t, s), name)
	require.NoError(t, err)
	text, err := json.Marshal(done)
	require.NoError(t, err)
	require.Contains(t, string(text), `"evicted":[],"evicted_count":0`)
}

func TestOnlyTheFirstEvictedAreShown(t *testing.T) {
	t.Parallel()
	waiters := func(first, last int) (all []admin.Waiter) {
		for place := first; place <= last; place++ {
			all = append(all, admin.Waiter{Position: place})
		}
		return all
	}
	done := &allEvicted{}
	done.add(waiters(30_001, 45_000)) // parts come from the end of the queue
	require.Len(t, done.Evicted, inspect.LookedAt)
	done.add(waiters(301, 700))
	done.add(nil)
	require.Equal(t, 15_400, done.EvictedCount)
	require.Len(t, done.Evicted, inspect.LookedAt)
	require.Equal(t, 301, done.Evicted[0].Position)
	require.Equal(t, 30_001, done.Evicted[400].Position)
	var text bytes.Buffer
	done.print(&text)
	require.True(t, strings.HasPrefix(text.String(), "lock \"\": 15400 waiters were evicted from the queue\n"))
	require.Contains(t, text.String(), "\n         and 5400 more\n")
}
