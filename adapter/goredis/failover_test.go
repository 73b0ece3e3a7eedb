package goredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// actedWithin is the bound on how long after the first Sentinel names another master
// connections to the former one end.
const actedWithin = 1500 * time.Millisecond

// ask runs a plain command and waits for its outcome.
func ask(tr transport.Transport, command string, args ...any) (any, error) {
	type outcome struct {
		reply any
		err   error
	}
	came := make(chan outcome, 1)
	call := &transport.Call{Command: command, Args: args}
	if len(args) > 0 {
		call.NumKeys = 1
	}
	tr.Start(call, func(reply any, err error) { came <- outcome{reply, err} })
	o := <-came
	return o.reply, o.err
}

// write runs INCR every few milliseconds until it works on another server than former,
// and returns when it last worked on former.
func writeUntilMoved(t *testing.T, tr transport.Transport, key string, former *redistest.Server) (last time.Time) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		_, err := ask(tr, "INCR", key)
		if err != nil {
			continue
		}
		info, err := ask(tr, "CONFIG", "GET", "port")
		if err != nil {
			continue
		}
		if at := info.([]any)[1].([]byte); former.Addr() != "127.0.0.1:"+string(at) {
			return last
		}
		last = time.Now()
	}
	t.Fatal("the transport stays with the former master")
	return last
}

func TestASwitchOfMastersIsActedOnAlthoughTheOldOneWorks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts func(t *testing.T) []redistest.Option
	}{
		{"redis", func(*testing.T) []redistest.Option { return nil }},
		{"valkey", func(t *testing.T) []redistest.Option {
			t.Helper()
			return []redistest.Option{redistest.WithBinary(redistest.ValkeyBinary(t))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := redistest.StartSentinels(t, 5*time.Second, c.opts(t)...)
			tr := over(t, redis.NewFailoverClient(failoverOptions(set, "", nil)))
			defer func() { require.NoError(t, tr.Close()) }()
			key, former := redistest.Key(t), set.Master(t)
			_, err := ask(tr, "INCR", key)
			require.NoError(t, err)
			sub, err := tr.Subscribe(t.Context(), key)
			require.NoError(t, err)
			wait := set.WatchSwitch(t)
			set.Failover(t)
			last := writeUntilMoved(t, tr, key, former)
			reported := wait()
			late := last.Sub(reported.At)
			t.Logf("the last write to the former master came %v after the first +switch-master", late.Round(time.Millisecond))
			require.Less(t, late, actedWithin)
			select {
			case e := <-sub.Events():
				require.True(t, e.Gap)
			case <-time.After(30 * time.Second):
				t.Fatal("no gap")
			}
			n, err := ask(tr, "PUBLISH", key, "hello")
			require.NoError(t, err)
			require.Equal(t, int64(1), n, "it listens on the new master")
		})
	}
}

func TestAFrozenMasterIsLeftWhenTheSentinelsNameAnother(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Second)
	tr := over(t, redis.NewFailoverClient(failoverOptions(set, "", nil)))
	defer func() { require.NoError(t, tr.Close()) }()
	key, former := redistest.Key(t), set.Master(t)
	_, err := ask(tr, "INCR", key)
	require.NoError(t, err)
	sub, err := tr.Subscribe(t.Context(), key)
	require.NoError(t, err)
	time.Sleep(3 * time.Second) // the Sentinels have been heard: they say so every two
	wait := set.WatchSwitch(t)
	former.Pause()
	writeUntilMoved(t, tr, key, former)
	took := time.Since(wait().At)
	t.Logf("a write to the new master %v after the first +switch-master", took.Round(time.Millisecond))
	require.Less(t, took, actedWithin+time.Second)
	require.True(t, (<-sub.Events()).Gap)
	former.Resume()
}
