package subcount

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// assertCount may run on any goroutine.
func assertCount(t *testing.T, w *deployment, want int64) bool {
	t.Helper()
	counts, err := w.Listeners(t.Context(), "somebody")
	return assert.NoError(t, err) && assert.Equal(t, []int64{want}, counts)
}

func requireCount(t *testing.T, w *deployment, want int64) {
	t.Helper()
	require.True(t, assertCount(t, w, want))
}

func requireUnknown(t *testing.T, w *deployment) error {
	t.Helper()
	counts, err := w.Listeners(t.Context(), "somebody")
	require.Error(t, err)
	require.Nil(t, counts)
	return err
}

func TestCountSumsAllNodes(t *testing.T) {
	t.Parallel()
	w := newDeployment(t, "1", "2")
	w.master.set("PUBSUB", []any{[]byte("a"), int64(1), []byte("b"), int64(0), []byte("a"), int64(1)})
	w.replicas[at("1")].set("PUBSUB", []any{"a", int64(2), "b", int64(0), "a", int64(2)})
	w.replicas[at("2")].set("PUBSUB", []any{"a", int64(4), "b", int64(0), "a", int64(4)})
	counts, err := w.Listeners(t.Context(), "a", "b", "a")
	require.NoError(t, err)
	require.Equal(t, []int64{7, 0, 7}, counts)
	for _, n := range []*node{w.master, w.replicas[at("1")], w.replicas[at("2")]} {
		last := n.calls[len(n.calls)-1]
		for _, c := range n.calls {
			if c.Command == "PUBSUB" {
				last = c
			}
		}
		require.Equal(t, []any{"NUMSUB", "a", "b", "a"}, last.Args)
	}
}

func TestShardedListenersAreCountedOnShard(t *testing.T) {
	t.Parallel()
	w := newDeployment(t)
	w.cfg.Publish = "SPUBLISH"
	requireCount(t, w, 1)
	require.Equal(t, []any{"SHARDNUMSUB", "somebody"}, w.master.calls[2].Args)
}

func TestReplicaListIsCachedForTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 10*time.Second, listGood)
		w := newDeployment(t, "1")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { assertCount(t, w, 2) })
		}
		wg.Wait()
		require.Equal(t, 1, w.master.asked("ROLE"))
		w.master.set("ROLE", roleOf())
		time.Sleep(listGood - 1)
		requireCount(t, w, 2)
		require.Equal(t, 1, w.master.asked("ROLE"))
		w.replicas[at("1")].set("HELLO", errGone)
		time.Sleep(time.Nanosecond)
		requireCount(t, w, 1)
		require.Equal(t, 2, w.master.asked("ROLE"))
		w.master.reconnect()
		requireCount(t, w, 1)
		require.Equal(t, 3, w.master.asked("ROLE"))
		require.Equal(t, 3, w.master.asked("HELLO"))
		w.Close()
	})
}

func TestCountRestartsAfterMasterChange(t *testing.T) {
	t.Parallel()
	w := newDeployment(t)
	once := sync.OnceFunc(func() {
		w.master.set("ROLE", roleOf("1"))
		w.replicas[at("1")] = &node{answers: map[string]any{"HELLO": hello("standalone", "replica"), "PUBSUB": numsub(1)}}
		w.master.reconnect()
	})
	w.master.before = func(command string) {
		if command == "PUBSUB" {
			once()
		}
	}
	requireCount(t, w, 2)
}

func TestRejectionIsCachedButTimeoutIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDeployment(t)
		w.master.set("ROLE", refusal("NOPERM no"))
		for range 3 {
			require.True(t, transport.IsCode(requireUnknown(t, w), "NOPERM"))
		}
		require.Equal(t, 1, w.master.asked("ROLE"))
		require.Zero(t, w.master.asked("PUBSUB"))
		w.master.set("ROLE", errGone)
		time.Sleep(listGood)
		for range 3 {
			require.ErrorIs(t, requireUnknown(t, w), transport.ErrNotSent)
		}
		require.Equal(t, 4, w.master.asked("ROLE"))
		w.master.set("ROLE", roleOf())
		requireCount(t, w, 1)
		w.Close()
	})
}

func TestWaiterRequestsListAfterCallerLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDeployment(t)
		w.master.set("ROLE", silence{})
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var first error
		wg.Go(func() { _, first = w.Listeners(hurried, "somebody") })
		synctest.Wait()
		wg.Go(func() { assertCount(t, w, 1) })
		synctest.Wait()
		w.master.set("ROLE", roleOf())
		wg.Wait()
		require.ErrorIs(t, first, context.DeadlineExceeded)
		require.ErrorIs(t, first, transport.ErrUncertain)
		require.Equal(t, 2, w.master.asked("ROLE"))
		require.NoError(t, w.master.Close())
		w.Close()
	})
}

func TestWaiterForSharedListEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDeployment(t)
		w.master.set("ROLE", silence{})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.Listeners(t.Context(), "somebody") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := w.Listeners(ctx, "somebody")
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		wg.Wait()
		require.Equal(t, 1, w.master.asked("ROLE"))
		require.NoError(t, w.master.Close())
		w.Close()
	})
}

func TestCountOfNoChannelsSendsNothing(t *testing.T) {
	t.Parallel()
	w := newDeployment(t)
	counts, err := w.Listeners(t.Context())
	require.NoError(t, err)
	require.Empty(t, counts)
	require.Empty(t, w.master.calls)
	w.Close()
}

func TestSilentNodeFailsCountAfterCommandTimeout(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"HELLO", "PUBSUB"} {
		synctest.Test(t, func(t *testing.T) {
			w := newDeployment(t, "1", "2")
			w.replicas[at("2")].set(command, silence{})
			began := time.Now()
			err := requireUnknown(t, w)
			require.Equal(t, patience, time.Since(began))
			require.ErrorContains(t, err, "replica "+at("2"))
			require.ErrorIs(t, err, transport.ErrUncertain)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			w.replicas[at("2")].set(command, errGone)
			require.ErrorIs(t, requireUnknown(t, w), transport.ErrNotSent)
			w.Close()
		})
	}
}

func TestMalformedRepliesReturnErrors(t *testing.T) {
	t.Parallel()
	role := func(replicas ...any) any { return []any{"master", int64(1), replicas} }
	for _, c := range []struct {
		command string
		reply   any
		want    error
	}{
		{"HELLO", nil, transport.ErrBadReply},
		{"HELLO", []any{"mode"}, transport.ErrBadReply},
		{"HELLO", hello("sentinel", "master"), transport.ErrBadReply},
		{"HELLO", hello("cluster", "master"), errCluster},
		{"ROLE", nil, transport.ErrBadReply},
		{"ROLE", []any{}, transport.ErrBadReply},
		{"ROLE", []any{"master"}, transport.ErrBadReply},
		{"ROLE", []any{"master", int64(1), "none"}, transport.ErrBadReply},
		{"ROLE", []any{"slave", "10.0.0.1", int64(1), "connected", int64(1)}, errNoMaster},
		{"ROLE", []any{"sentinel", []any{}}, errNoMaster},
		{"ROLE", role("replica"), transport.ErrBadReply},
		{"ROLE", role([]any{"10.0.0.1"}), transport.ErrBadReply},
		{"ROLE", role([]any{"", "1", "1"}), transport.ErrBadReply},
		{"ROLE", role([]any{"10.0.0.1", "0", "1"}), transport.ErrBadReply},
		{"ROLE", role([]any{"10.0.0.1", "65536", "1"}), transport.ErrBadReply},
		{"ROLE", roleOf("1", "2", "1"), errTwins},
		{"PUBSUB", nil, transport.ErrBadReply},
		{"PUBSUB", []any{}, transport.ErrBadReply},
		{"PUBSUB", []any{"somebody", int64(1), "else", int64(1)}, transport.ErrBadReply},
		{"PUBSUB", []any{"somebody", "1"}, transport.ErrBadReply},
		{"PUBSUB", []any{"somebody", int64(-1)}, transport.ErrBadReply},
	} {
		w := newDeployment(t, "1", "2")
		w.master.set(c.command, c.reply)
		require.ErrorIs(t, requireUnknown(t, w), c.want, "%s: %v", c.command, c.reply)
	}
	addrs, err := replicasOf(role([]any{"fe80::1", int64(7), "1"}))
	require.NoError(t, err)
	require.Equal(t, []string{"[fe80::1]:7"}, addrs)
}

func TestReplicasRequireDialer(t *testing.T) {
	t.Parallel()
	w := newDeployment(t, "1")
	w.cfg.Replica = nil
	require.ErrorIs(t, requireUnknown(t, w), errNoDialer)
	w.master.set("ROLE", roleOf())
	w.master.reconnect()
	requireCount(t, w, 1)
}

func TestCountAfterCloseFails(t *testing.T) {
	t.Parallel()
	w := newDeployment(t, "1")
	requireCount(t, w, 2)
	w.Close()
	w.Close()
	require.Equal(t, 1, w.replicas[at("1")].ends())
	err := requireUnknown(t, w)
	require.True(t, errors.Is(err, transport.ErrClosed) && errors.Is(err, transport.ErrNotSent), err)
}

func TestConfiguredReplicasReplaceROLE(t *testing.T) {
	t.Parallel()
	w := newDeployment(t, "1")
	reported, err := []string{at("1")}, error(nil)
	w.cfg.Replicas = func(context.Context) ([]string, error) { return reported, err }
	requireCount(t, w, 2)
	require.Zero(t, w.master.asked("ROLE"))
	require.Zero(t, w.master.asked("HELLO"), "it may be in a cluster")
	reported, err = nil, errGone
	w.master.reconnect()
	require.ErrorIs(t, requireUnknown(t, w), transport.ErrNotSent)
}
