package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// A machine that is gone answers no dial either. A renewal has no timeout of its own: it
// waits for the dial, while another node serves its slot.
func TestADialOfAMasterThatIsGoneIsGivenUpWhenAnotherTakesItsPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		w.requireIncr(key, 1)
		w.do(func() { w.servers[one].gate = make(chan struct{}) })
		w.kill(one)
		time.Sleep(time.Millisecond)
		began := time.Now()
		came := make(chan error, 1)
		w.Start(&transport.Call{Command: "INCR", NumKeys: 1, Args: []any{key}, Urgent: true, Vital: true}, func(_ any, err error) { came <- err })
		time.Sleep(1500 * time.Millisecond)
		w.do(func() {
			for slot := range w.owner {
				w.owner[slot] = two
			}
		})
		require.ErrorIs(t, <-came, transport.ErrNotSent)
		require.LessOrEqual(t, time.Since(began), 3*time.Second+time.Millisecond, "the dial may take five")
		w.requireIncr(key, 2)
	})
}
