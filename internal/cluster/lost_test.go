package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock may be gone with the connection over which it was taken, and with the master.
func TestLostConnectionsAndMastersAreTold(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		w.requireIncr(key, 1)
		lost := w.Lost()
		w.move(key, two)
		w.requireIncr(key, 2)
		time.Sleep(time.Second)
		synctest.Wait()
		requireOpen(t, lost, "one slot of many has moved, with its locks")

		w.do(func() {
			for slot := range w.owner {
				w.owner[slot] = two
			}
		})
		w.survey()
		<-lost // a master has none of its slots any more
		lost = w.Lost()
		w.kill(one)
		synctest.Wait()
		requireOpen(t, lost, "nothing is kept there")
		w.kill(two)
		<-lost
	})
}

func requireOpen(t *testing.T, c <-chan struct{}, why string) {
	t.Helper()
	select {
	case <-c:
		require.Fail(t, "it was told", why)
	default:
	}
}
