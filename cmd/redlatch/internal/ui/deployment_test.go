package ui_test

import (
	"encoding/base64"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

var (
	takes  = url.Values{"holder": {program.SomeOwner}, "dead": {program.SomeOwner}, "reason": {"x"}}
	evicts = url.Values{"owner": {base64.RawURLEncoding.EncodeToString([]byte(program.RedissonOwner))}, "reason": {"x"}}
)

func TestUIShowsAndRepairsClusterLocks(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	names := []string{"a", "b", "c"} // one on each master
	for _, name := range names {
		c.DoAt(t, name, "HSET", name, program.SomeOwner, 1)
		c.DoAt(t, name, "RPUSH", codec.QueueKey(name), program.RedissonOwner)
	}
	_, address := allowing(t, "redis-cluster://"+c.Addrs()[0]+","+c.Addrs()[1], "unlock,evict")
	_, text := load(t, address, "ops", "s3cret")
	for _, name := range names {
		require.Contains(t, text, "<bdi>"+name+"</bdi>")
		status, text := send(t, address+"unlock?name="+name, "ops", "s3cret", takes)
		require.Equal(t, 200, status, text)
		require.EqualValues(t, 0, c.DoAt(t, name, "EXISTS", name))
		status, text = send(t, address+"evict?name="+name, "ops", "s3cret", evicts)
		require.Equal(t, 200, status, text)
		require.EqualValues(t, 0, c.DoAt(t, name, "LLEN", codec.QueueKey(name)))
	}
}

func TestUIReportsReadOnlyReplica(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	master.Do(t, "HSET", "job", program.SomeOwner, 1)
	master.Do(t, "WAIT", 1, 10_000)
	_, address := allowing(t, replica.URL(), "unlock,evict")
	for action, form := range map[string]url.Values{"unlock": takes, "evict": evicts} {
		status, text := send(t, address+action+"?name=job", "ops", "s3cret", form)
		require.Equal(t, 500, status, action)
		require.Contains(t, text, "is a replica of "+master.Addr()+" and rejects writes", action)
	}
	require.True(t, program.Exists(t, master, "job"))
}
