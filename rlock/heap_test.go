package rlock_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// heapInUse collects garbage and returns what is left.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go in the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// inLocalQueue returns how many callers of this process are in its local queue.
func inLocalQueue() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "localqueue.(*caller).awaitTurn(")
}

// Not parallel: the heap is that of the whole process.
func TestAWaiterTakesLittleMemory(t *testing.T) {
	testlevel.NoRace(t, "it takes memory, too")
	const callers, most = 1000, 1750 // bytes: it is 1,588, of which the goroutine is 480
	srv, client := onShared(t, noPoll())
	name := redistest.Key(t)
	hold := take(t, rlock.New(connect(t, srv.URL()), name), rlock.WithLease(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := rlock.New(client, name) // one for all: what a waiter takes is counted, not what a Lock does
	var wg sync.WaitGroup
	wait := func() {
		_, err := l.Lock(ctx)
		assert.ErrorIs(t, err, context.Canceled)
	}
	before := heapInUse()
	wg.Go(wait)
	awaitListeners(t, srv, name, 1) // one that comes before Redis answered has a timer, for as long as a command may take
	for range callers - 1 {
		wg.Go(wait)
	}
	until(t, soon, "all but one wait in the local queue", func() bool { return inLocalQueue() == callers-1 })
	each := (heapInUse() - before) / callers
	t.Logf("%d bytes each", each)
	require.LessOrEqual(t, each, int64(most))
	cancel()
	wg.Wait()
	require.NoError(t, hold.Unlock())
}
