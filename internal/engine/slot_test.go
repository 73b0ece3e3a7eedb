package engine

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
)

// closing returns a slot that counts the closes of each state.
func closing() (slot *Slot[*atomic.Int32]) {
	return &Slot[*atomic.Int32]{
		Make:  func(*Engine) *atomic.Int32 { return &atomic.Int32{} },
		Close: func(closed *atomic.Int32) { closed.Add(1) },
	}
}

func TestSlotKeepsOneStateForEachEngine(t *testing.T) {
	t.Parallel()
	slot, other := closing(), closing()
	e, _ := engineOver(t, &faketransport.Fake{})
	f, _ := engineOver(t, &faketransport.Fake{})
	state := slot.Of(e)
	require.Same(t, state, slot.Of(e))
	require.NotSame(t, state, slot.Of(f))
	require.NotSame(t, state, other.Of(e))

	var made *Engine
	slot = &Slot[*atomic.Int32]{Make: func(e *Engine) *atomic.Int32 { made = e; return nil }}
	require.Nil(t, slot.Of(e))
	require.Same(t, e, made)
	require.NoError(t, e.Close(), "that slot is empty")
}

func TestEngineCloseClosesSlotOnce(t *testing.T) {
	t.Parallel()
	e, _ := engineOver(t, &faketransport.Fake{})
	slot, other := closing(), closing()
	state, second := slot.Of(e), other.Of(e)
	require.Same(t, state, slot.Of(e))
	require.Zero(t, state.Load(), "not before")
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Same(t, state, slot.Of(e))
	require.Equal(t, int32(1), state.Load())
	require.Equal(t, int32(1), second.Load())

	late := closing()
	for range 2 {
		require.Equal(t, int32(1), late.Of(e).Load(), "closed when it is made")
	}
}

func TestOnlyStoredStateIsClosed(t *testing.T) {
	t.Parallel()
	for range 200 {
		e, _ := engineOver(t, &faketransport.Fake{})
		var mu sync.Mutex // guards made
		var made []*atomic.Int32
		slot := closing()
		slot.Make = func(*Engine) *atomic.Int32 {
			mu.Lock()
			defer mu.Unlock()
			state := &atomic.Int32{}
			made = append(made, state)
			return state
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { slot.Of(e) })
		}
		wg.Go(func() { _ = e.Close() })
		wg.Wait()
		kept := slot.Of(e)
		for _, state := range made {
			if state == kept {
				require.Equal(t, int32(1), state.Load())
			} else {
				require.Zero(t, state.Load())
			}
		}
	}
}

func TestRegistrySharesAValueUntilItsLastUserLeaves(t *testing.T) {
	t.Parallel()
	var r Registry[string, int]
	made := 0
	next := func() int { made++; return made }
	require.Equal(t, 1, r.Join("a", next))
	require.Equal(t, 1, r.Join("a", next), "shared")
	require.Equal(t, 2, r.Join("b", next))
	r.Leave("a")
	require.Equal(t, 1, r.Join("a", next), "one still uses it")
	r.Leave("a")
	r.Leave("a")
	require.Equal(t, 3, r.Join("a", next), "forgotten")
	r.Leave("a")
	r.Leave("b")
	require.Empty(t, r.byKey)
	r.Leave("a") // once too often
	require.Empty(t, r.byKey)
}
