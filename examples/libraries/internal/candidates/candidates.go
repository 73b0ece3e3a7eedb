// Package candidates contains code that the tests of the leader examples share.
package candidates

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
)

// soon is much longer than any expected event takes.
const soon = 30 * time.Second

// work reports that a candidate has worked.
type work struct{ candidate int }

// Takes checks that only one candidate works at a time. The second candidate takes over after the
// first is disconnected from the lock's server, and the first takes over after the second has
// stopped. lead returns a candidate's Lead function, which calls did when it works. Its own
// connection is not cut.
func Takes(t *testing.T, s *redistest.Server, lead func(did func()) func(context.Context) error) {
	t.Helper()
	name, works, proxy := redistest.Key(t), make(chan work, 1000), redistest.NewProxy(t, s.Addr())
	run := func(candidate int, url string) (stop func()) {
		client := Connect(t, url)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		config := leader.Config{
			Lead:    lead(func() { works <- work{candidate} }),
			OnError: func(err error) { t.Logf("candidate %d: %v", candidate, err) },
		}
		done.Go(func() { assert.NoError(t, leader.Run(ctx, client, name, config)) })
		stop = func() { cancel(); done.Wait() }
		t.Cleanup(stop)
		return stop
	}
	run(1, proxy.URL())
	until(t, works, 1)
	stop := run(2, s.URL())
	proxy.Blackhole()
	until(t, works, 2)
	proxy.Heal()
	stop()
	until(t, works, 1)
}

// until waits until a candidate has worked twice in a row, which means that the other one has
// stopped.
func until(t *testing.T, works <-chan work, candidate int) {
	t.Helper()
	over, row := time.After(soon), 0
	for row < 2 {
		select {
		case w := <-works:
			if w.candidate == candidate {
				row++
				continue
			}
			require.Zero(t, row, "two candidates work at the same time")
		case <-over:
			require.FailNow(t, "the candidate does not work")
		}
	}
}

// Connect returns a client whose locks expire after two seconds without a renewal.
func Connect(t *testing.T, url string) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), url, redlatch.WithWatchdogTimeout(2*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}
