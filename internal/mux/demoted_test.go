package mux_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

const readOnly = "-READONLY You can't write against a read only replica.\r\n"

func TestDemotedServerIsLeftAfterPendingReplies(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{
		readOnly,
		"-ERR Error running script (call to f_x): @user_script:1: -READONLY You can't write against a read only replica. \r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer().answer(map[string]string{"WRITE": silence, "SLOW": silence})
			cfg := p.config()
			var again, moved atomic.Int32
			cfg.OnReconnect, cfg.OnMoved = func() { again.Add(1) }, func() { moved.Add(1) }
			m := open(t, cfg)
			write, slow := start(m, command("WRITE")), start(m, command("SLOW"))
			synctest.Wait()
			p.Say(1, refusal)
			require.True(t, transport.IsCode(await(t, write).err, "READONLY"))
			queued := start(m, command("ECHO", "queued"))
			time.Sleep(5 * time.Second)
			none(t, queued)
			require.Equal(t, 1, p.dialed())
			require.Equal(t, []string{"WRITE", "SLOW"}, p.commands())

			began := time.Now()
			p.Say(1, ok)
			require.Equal(t, outcome{"OK", nil}, await(t, slow))
			require.Equal(t, outcome{[]byte("ECHO queued"), nil}, await(t, queued))
			require.LessOrEqual(t, time.Since(began), 20*time.Millisecond)
			synctest.Wait()
			require.EqualValues(t, 1, again.Load())
			require.EqualValues(t, 1, moved.Load(), "reported when there is a new connection")

			p.Say(2, hangUp)
			synctest.Wait()
			require.NoError(t, do(t, m, command("ECHO", "x")).err)
			synctest.Wait()
			require.EqualValues(t, 2, again.Load())
			require.EqualValues(t, 1, moved.Load(), "a connection that is lost leads nowhere else")
		})
	}
}

func TestPersistentReplicaIsRetriedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer().answer(map[string]string{"WRITE": readOnly})
		cfg := p.config()
		log, logger := redistest.NewJournal()
		cfg.Logger = logger
		m := open(t, cfg)
		refusals := 0
		for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(time.Millisecond) {
			require.True(t, transport.IsCode(do(t, m, command("WRITE")).err, "READONLY"))
			refusals++
		}
		require.Greater(t, p.dialed(), 20)
		require.Less(t, p.dialed(), 60, "after pauses")
		require.Equal(t, p.dialed(), refusals)
		require.Len(t, log.Lines("level=WARN msg=\"redlatch: the server became a replica"), 1)

		// Later it happens again.
		p.answer(nil)
		require.NoError(t, do(t, m, command("WRITE")).err)
		time.Sleep(time.Minute)
		p.answer(map[string]string{"WRITE": readOnly})
		began := time.Now()
		for range 2 {
			require.Error(t, do(t, m, command("WRITE")).err)
		}
		require.LessOrEqual(t, time.Since(began), 20*time.Millisecond, "the pauses begin anew")
		require.Len(t, log.Lines("level=WARN msg=\"redlatch: the server became a replica"), 2)
		require.Empty(t, log.Lines("connection lost"), "none was")
	})
}

func TestUnresponsiveReplicaIsAbandoned(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"WRITE": readOnly, "HANG": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		require.NoError(t, mux.Ping(t.Context(), m))
		began := time.Now()
		hung := make([]<-chan outcome, 2)
		require.NoError(t, do(t, m, command("ECHO", "x")).err)
		write := start(m, command("WRITE"))
		for i := range hung {
			hung[i] = start(m, command("HANG"))
		}
		require.Error(t, await(t, write).err)
		for _, came := range hung {
			// It was sent before, or on the next connection.
			require.ErrorIs(t, await(t, came).err, transport.ErrUncertain)
		}
		require.LessOrEqual(t, time.Since(began), 21*time.Second)
		require.NoError(t, do(t, m, command("ECHO", "x")).err)
	})
}

func TestCloseFailsCallsOnDemotedServer(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"WRITE": silence, "HANG": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		write, hung := start(m, command("WRITE")), start(m, command("HANG"))
		synctest.Wait()
		p.Say(1, readOnly)
		require.Error(t, await(t, write).err)
		queued := start(m, command("ECHO", "x"))
		began := time.Now()
		require.NoError(t, m.Close())
		assert.Zero(t, time.Since(began))
		assert.ErrorIs(t, await(t, hung).err, transport.ErrUncertain)
		assert.ErrorIs(t, await(t, queued).err, transport.ErrNotSent)
	})
}
