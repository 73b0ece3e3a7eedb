package subcount

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

func TestIdleConnectionClosesAfterOneMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, time.Minute, idleTime)
		w := newDeployment(t, "1")
		for range 3 {
			requireCount(t, w, 2)
			time.Sleep(idleTime - 1)
		}
		synctest.Wait()
		require.Zero(t, w.replicas[at("1")].ends())
		require.Len(t, w.dialled, 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 1, w.replicas[at("1")].ends())
		requireCount(t, w, 2)
		require.Len(t, w.dialled, 2)
		w.Close()
		require.Equal(t, 2, w.replicas[at("1")].ends())
	})
}

func TestUsedConnectionStaysOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDeployment(t, "1")
		w.cfg.Command = time.Hour
		w.replicas[at("1")].set("PUBSUB", silence{})
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { _, err = w.Listeners(t.Context(), "somebody") })
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		require.Zero(t, w.replicas[at("1")].ends())
		wg.Wait()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * idleTime)
		synctest.Wait()
		require.Equal(t, 1, w.replicas[at("1")].ends())
		w.Close()
	})
}

// leaves removes the replicas from the reply to ROLE.
func (w *deployment) leaves() {
	w.master.set("ROLE", roleOf())
	w.master.reconnect()
}

func TestResyncingReplicaIsCountedWhileItAnswers(t *testing.T) {
	t.Parallel()
	w := newDeployment(t, "1")
	requireCount(t, w, 2)
	w.leaves()
	requireCount(t, w, 2)
	w.replicas[at("1")].set("PUBSUB", refusal("LOADING it reads"))
	require.True(t, transport.IsCode(requireUnknown(t, w), "LOADING"))
	w.replicas[at("1")].set("PUBSUB", numsub(1))
	requireCount(t, w, 2)
	w.master.set("ROLE", roleOf("1"))
	w.master.reconnect()
	w.replicas[at("1")].set("PUBSUB", errGone)
	require.ErrorIs(t, requireUnknown(t, w), transport.ErrNotSent, "it is in step again: its failures count")
}

func TestUnreachableFormerReplicaIsForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		answer  any
	}{
		"refuses connections": {"HELLO", errGone},
		"is broken":           {"PUBSUB", errGone},
		"says nothing":        {"PUBSUB", silence{}},
		"is a master now":     {"HELLO", hello("standalone", "master")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newDeployment(t, "1")
				requireCount(t, w, 2)
				w.leaves()
				w.replicas[at("1")].set(c.command, c.answer)
				requireCount(t, w, 1)
				asked := w.replicas[at("1")].asked("HELLO")
				requireCount(t, w, 1)
				require.Equal(t, asked, w.replicas[at("1")].asked("HELLO"), "it was forgotten")
				time.Sleep(2 * idleTime)
				synctest.Wait()
				require.Equal(t, 1, w.replicas[at("1")].ends())
				w.Close()
			})
		})
	}
}

func TestCallerTimeoutKeepsFormerReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDeployment(t, "1")
		requireCount(t, w, 2)
		w.leaves()
		w.replicas[at("1")].set("PUBSUB", silence{})
		ctx, cancel := context.WithTimeout(t.Context(), patience-1)
		defer cancel()
		_, err := w.Listeners(ctx, "somebody")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.replicas[at("1")].set("PUBSUB", numsub(1))
		requireCount(t, w, 2)
		w.Close()
	})
}

func TestFormerReplicaIsForgottenAfterTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDeployment(t, "1")
		requireCount(t, w, 2)
		w.leaves()
		for began := time.Now(); time.Since(began) < formerTime; time.Sleep(listGood) {
			requireCount(t, w, 2)
		}
		requireCount(t, w, 1)
		w.Close()
	})
}
