package rsemaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rsemaphore"
)

// The message of a release wakes a caller, and the server is busy just then, for longer than a command
// timeout: the caller asks again as soon as the server answers, since nothing else may wake it.
func TestACallerWhoseTurnGetsNoAnswerAsksAgainSoon(t *testing.T) {
	for name, opts := range map[string][]rsemaphore.Option{"any order": nil, "strict": {rsemaphore.WithStrictOrder()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var server *embedded.Server
				srv, near, held := inBubble(t, redlatch.WithObserver(redlatch.Observer{Woken: func(context.Context, redlatch.Woken) {
					server.FailWith("BUSY Redis is busy running a script")
				}}), opts...)
				server = srv.Server
				ctx, leave := context.WithCancel(t.Context())
				go func() { _, _ = near.Acquire(ctx, 1) }()
				synctest.Wait()
				came := make(chan *rsemaphore.Hold, 1)
				go func() {
					h, _ := near.Acquire(t.Context(), 1)
					came <- h
				}()
				synctest.Wait()
				leave()
				synctest.Wait()
				require.NoError(t, held.Release())
				time.Sleep(4 * time.Second)
				server.Heal()
				began := time.Now()
				h := <-came
				require.NotNil(t, h)
				require.LessOrEqual(t, time.Since(began), 2*time.Second)
				require.NoError(t, h.Release())
			})
		})
	}
}
