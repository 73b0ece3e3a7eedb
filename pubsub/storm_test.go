package pubsub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// A node may have lost one slot of many: it sends SUNSUBSCRIBE for the channels there, and
// refuses them for as long as no node serves the slot.
func TestOneSlotThatIsNotServedCostsTheOtherChannelsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := false
		f := &fakeServer{t: t}
		f.refuse = func(command string) string {
			if down && command == "SSUBSCRIBE lost" {
				return "CLUSTERDOWN Hash slot not served"
			}
			return ""
		}
		s := New(Config{Dial: f.dial, Sharded: true})
		defer mustClose(t, s)
		lost, others := mustSubscribe(t, s, "lost"), []transport.Subscription{}
		for _, name := range []string{"a", "b", "c", "d"} {
			others = append(others, mustSubscribe(t, s, name))
		}
		down = true
		f.push(array("sunsubscribe", "lost") + ":4\r\n")
		time.Sleep(10 * time.Second)
		e := transport.Event{}
		select {
		case e = <-others[0].Events():
		default:
		}
		t.Logf("dials %d, gaps of a channel that is served %d, commands %d", len(f.dialTimes()), e.Coalesced+1, len(f.commands()))
		assert.Less(t, len(f.dialTimes()), 30)
		require.NoError(t, lost.Err())
		down = false
		time.Sleep(10 * time.Second)
		require.True(t, awaitEvent(t, lost).Gap)
	})
}
