package rueidis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
)

// TestASwitchOfMastersIsActedOn lets Sentinel name another master while the old one
// goes on working, and takes writes that are lost.
func TestASwitchOfMastersIsActedOn(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, 2*time.Second)
	tr := opened(t, clientOf(t, sentinels(set)))
	old := set.Master(t)
	sub := subscribe(t, tr, "channel")
	_, err := do(tr, "SET", "where", old.Addr())
	require.NoError(t, err)

	told := set.WatchSwitch(t)
	set.Failover(t)
	sw := told()
	require.True(t, event(t, sub).Gap)
	heard := time.Since(sw.At)
	replied := false
	for !replied {
		_, err := do(tr, "SET", "where", sw.To)
		replied = err == nil
	}
	wrote := time.Since(sw.At)
	t.Logf("after +switch-master: gap %v, first write %v", heard.Round(time.Millisecond), wrote.Round(time.Millisecond))
	assert.Less(t, heard, 1500*time.Millisecond)
	assert.Less(t, wrote, 1500*time.Millisecond)
	assert.Equal(t, []byte(sw.To), set.Do(t, "GET", "where"), "it was written to the new master")
	set.Do(t, "PUBLISH", "channel", "there")
	for e := event(t, sub); e.Payload != "there"; {
		e = event(t, sub)
	}
}

func TestLocksWithSentinel(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute, redistest.WithBinary(redistest.ValkeyBinary(t)))
	client := clientOf(t, sentinels(set))
	d := deployment(client, onOne(set), "PUBLISH")
	d.New = func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, client, rueidis.WithReplicaClient(direct))
	}
	locksuite.Run(t, d)
}

func TestLocksGoOnAfterTheMasterIsKilled(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Second)
	client := clientOf(t, sentinels(set))
	d := deployment(client, onOne(set), "PUBLISH")
	var crowds []*locksuite.Crowd
	for _, kind := range locksuite.Kinds {
		crowds = append(crowds, d.StartCrowd(t, kind, 4, redistest.Key(t)))
	}
	for _, crowd := range crowds {
		crowd.AwaitProgress(10)
	}
	master := set.Master(t)
	master.Kill()
	set.AwaitMaster(t, master)
	for i, crowd := range crowds {
		crowd.AwaitProgress(10)
		v := crowd.Stop()
		t.Logf("%s: %+v", locksuite.Kinds[i].Name, v)
		assert.Less(t, v.Longest, 15*time.Second)
	}
}
