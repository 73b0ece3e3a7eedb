package rwqueue

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// come returns a caller that was refused the lock or is waiting behind such a caller.
func come(all *engine.Registry[string, *queue], reads bool) *caller {
	q := all.Join("key", func() *queue { return &queue{key: "key", queues: all} })
	c := &caller{strategy: &strategy{reads: reads}, queue: q}
	if may, _ := c.begin(false); may {
		c.Refused(&acquire.Acquisition{}, acquire.Outcome{})
	}
	return c
}

// leaveWhileOthersPoll makes the first, refused caller leave while the callers behind it poll.
func leaveWhileOthersPoll(t *testing.T, reads bool) (q *queue, behind []*caller) {
	t.Helper()
	all := &engine.Registry[string, *queue]{}
	first := come(all, reads)
	behind = []*caller{come(all, reads), come(all, reads), come(all, reads)}
	begin := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() { <-begin; first.Leave(&acquire.Acquisition{}) })
	for _, c := range behind {
		over.Go(func() {
			<-begin
			granted, err := c.Poll(t.Context(), &acquire.Acquisition{})
			assert.False(t, granted)
			assert.NoError(t, err)
		})
	}
	close(begin)
	over.Wait()
	return first.queue, behind
}

func TestPollDuringLeaderDeparture(t *testing.T) {
	t.Parallel()
	for range 200 {
		q, behind := leaveWhileOthersPoll(t, true)
		require.Contains(t, behind, q.leader)
		require.Len(t, q.readers, len(behind)-1)
		require.NotContains(t, q.readers, q.leader)
	}
}

func TestPollDuringTurnChange(t *testing.T) {
	t.Parallel()
	for range 200 {
		q, behind := leaveWhileOthersPoll(t, false)
		require.True(t, behind[0].turn)
		require.Equal(t, behind[1:], q.writers)
	}
}
