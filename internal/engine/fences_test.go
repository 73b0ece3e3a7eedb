package engine

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFencesRunOncePerConnectionAndShareTheResult(t *testing.T) {
	for _, result := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var f fences
			var kills atomic.Int32
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					conn := int64(1 + i%2)
					require.Equal(t, result, f.do(conn, func() bool {
						kills.Add(1)
						time.Sleep(time.Second)
						return result
					}))
				})
			}
			began := time.Now()
			wg.Wait()
			require.Equal(t, time.Second, time.Since(began), "two connections do not wait for each other")
			require.Equal(t, int32(2), kills.Load())
		})
	}
}

func TestFencesRememberAResultForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fences
		kills := 0
		kill := func() bool { kills++; return kills > 1 }
		require.False(t, f.do(1, kill))
		require.False(t, f.do(1, kill))
		time.Sleep(fenceMemory)
		require.False(t, f.do(1, kill))
		require.Equal(t, 1, kills)
		time.Sleep(time.Millisecond)
		require.True(t, f.do(1, kill))
		require.Equal(t, 2, kills)
	})
}

func TestFencesForgetOldConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fences
		for conn := range int64(100) {
			f.do(conn, func() bool { return true })
			time.Sleep(fenceMemory + time.Millisecond)
		}
		require.Len(t, f.byID, 1)
	})
}
