package transport_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/transport"
)

func TestWithdrawnCallCannotBeClaimed(t *testing.T) {
	t.Parallel()
	var c transport.Call
	assert.True(t, c.Abandon(), "it has not been sent")
	assert.True(t, c.Abandon(), "the result does not change")
	assert.False(t, c.Claim(7))
	assert.False(t, c.Claim(7))
	assert.False(t, c.Abandoned(), "it was never sent")
}

func TestSentCallCannotBeWithdrawn(t *testing.T) {
	t.Parallel()
	var c transport.Call
	assert.True(t, c.Claim(7))
	assert.False(t, c.Abandoned())
	assert.False(t, c.Abandon(), "it may have been sent")
	assert.False(t, c.Abandon(), "the result does not change")
	assert.True(t, c.Abandoned())
	assert.Equal(t, int64(7), c.Conn())
}

func TestCallClaimedAgainForRetry(t *testing.T) {
	t.Parallel()
	var c transport.Call
	assert.Zero(t, c.Conn())
	assert.True(t, c.Claim(7))
	assert.True(t, c.Claim(8))
	assert.Equal(t, int64(8), c.Conn(), "the last one counts")
	assert.False(t, c.Abandon())
	assert.True(t, c.Claim(9), "its transport must drop an abandoned call")
	assert.True(t, c.Abandoned(), "still abandoned")
}

func TestAbandonAndClaimAreExclusive(t *testing.T) {
	t.Parallel()
	const rounds = 5000
	var withdrawn, sent atomic.Int64
	for range rounds {
		var c transport.Call
		var wg sync.WaitGroup
		var left [2]bool
		var claimed bool
		for i := range left {
			wg.Go(func() { left[i] = c.Abandon() })
		}
		wg.Go(func() {
			claimed = c.Claim(3)
			assert.Equal(t, claimed, c.Claim(3), "claimed again for a retry")
			_ = c.Abandoned() // readers run concurrently
		})
		wg.Wait()
		assert.Equal(t, left[0], left[1], "both callers of Abandon get the same result")
		assert.NotEqual(t, claimed, left[0], "the call was both withdrawn and sent, or neither")
		assert.Equal(t, claimed, c.Abandoned())
		if claimed {
			sent.Add(1)
		} else {
			withdrawn.Add(1)
		}
	}
	t.Logf("%d withdrawn, %d sent", withdrawn.Load(), sent.Load())
}

func TestKeyReturnsOnlyKeys(t *testing.T) {
	t.Parallel()
	c := transport.Call{NumKeys: 2, Args: []any{"first", []byte("second"), "an argument"}}
	for i, want := range map[int]string{-1: "", 0: "first", 1: "second", 2: "", 3: ""} {
		assert.Equal(t, want, c.Key(i), fmt.Sprint("key ", i))
	}
	c = transport.Call{NumKeys: 3, Args: []any{int64(12)}}
	assert.Empty(t, c.Key(0), "a number is not a key")
	assert.Empty(t, c.Key(1), "fewer arguments than keys")
}

func TestNameReturnsScriptOrCommand(t *testing.T) {
	t.Parallel()
	c := transport.Call{Command: "HGET"}
	assert.Equal(t, "HGET", c.Name())
	c.Script = transport.NewScript("acquire", "return 1")
	assert.Equal(t, "acquire", c.Name())
}

func TestScriptIdentifiedByDigest(t *testing.T) {
	t.Parallel()
	s := transport.NewScript("one", "return 1")
	assert.Equal(t, "one", s.Name())
	assert.Equal(t, "return 1", s.Text())
	assert.Equal(t, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", s.SHA(), "the reply of SCRIPT LOAD")
}

func TestClaimDoesNotAllocate(t *testing.T) {
	var c transport.Call
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c.Claim(1)
		c.Abandon()
		c = transport.Call{}
	}))
}

func TestCallWithdrawnOnlyWhileQueued(t *testing.T) {
	t.Parallel()
	var queued, sent transport.Call
	assert.True(t, queued.Withdraw())
	assert.False(t, queued.Claim(7))
	assert.True(t, queued.Abandon(), "still withdrawn")
	assert.True(t, sent.Claim(7))
	assert.False(t, sent.Withdraw())
	assert.False(t, sent.Abandoned(), "its caller still waits")
	assert.Equal(t, int64(7), sent.Conn())
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
