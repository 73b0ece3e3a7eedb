package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nodes that do not agree on a slot each name the other. They must not be asked in turns
// without a pause.
func TestASubscriptionThatIsSentInCirclesPauses(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		sub := w.subscribe(key)
		w.requireIncr("{foo}", 1)
		w.do(func() {
			w.servers[one].lies, w.servers[two].lies = two, one
			for c := range w.servers[one].conns {
				_ = c.Close()
			}
		})
		time.Sleep(10 * time.Second)
		w.do(func() {
			assert.Less(t, w.servers[one].lied, 300, "in ten seconds")
			w.servers[one].lies, w.servers[two].lies = "", ""
		})
		time.Sleep(10 * time.Second)
		require.NoError(t, sub.Err())
		sub.Close()
	})
}
