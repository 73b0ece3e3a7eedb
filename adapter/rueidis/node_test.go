package rueidis

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// knowing is a client that knows a node once it was sent to it.
type knowing struct {
	lib.Client
	nodes map[string]lib.Client
	asked []string
}

func (k *knowing) Nodes() map[string]lib.Client { return k.nodes }

// B returns a builder of commands for slot 0 alone, which that of 06S is.
func (k *knowing) B() (b lib.Builder) { return b }

func (k *knowing) Do(_ context.Context, cmd lib.Completed) (r lib.RedisResult) {
	k.asked = append(k.asked, cmd.Commands()...)
	if cmd.Commands()[0] == "EVALSHA" {
		k.nodes["new:1"] = k
	}
	return r
}

func TestANodeThatTheClientDoesNotKnowIsMadeKnownToIt(t *testing.T) {
	t.Parallel()
	client := &knowing{}
	client.nodes = map[string]lib.Client{"old:1": client}
	node, err := nodeOf(t.Context(), client, "old:1", "key")
	require.NoError(t, err)
	assert.NotNil(t, node)
	assert.Empty(t, client.asked)
	_, err = nodeOf(t.Context(), client, "new:1", "")
	require.ErrorIs(t, err, errUnknownNode)
	require.ErrorContains(t, err, "new:1")
	assert.Equal(t, []string{"EVAL", tryAgain, "0"}, client.asked, "it is to look anew")
	client.asked = nil
	node, err = nodeOf(t.Context(), client, "new:1", "06S")
	require.NoError(t, err)
	assert.NotNil(t, node)
	assert.Equal(t, []string{"EVALSHA", noScript, "1", "06S"}, client.asked, "what no server can have")
	_, err = nodeOf(t.Context(), client, "other:1", "06S")
	require.ErrorIs(t, err, errUnknownNode)
}

func TestRefusalsHaveTheirCodeBack(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"WRONGTYPE Operation":       "WRONGTYPE Operation",
		"unknown command 'X'":       "ERR unknown command 'X'",
		"MOVED 1 a:1":               "MOVED 1 a:1",
		"Error running script: OOM": "ERR Error running script: OOM",
		"":                          "ERR ",
	} {
		assert.Equal(t, want, refusal(said1(said)).Error())
	}
}

type said1 string

func (s said1) Error() string { return string(s) }

func TestOptionsOfAServerAreTheClientsButForWhereTheyLead(t *testing.T) {
	t.Parallel()
	conf := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "redis"}
	of := lib.ClientOption{
		InitAddress: []string{"sentinel:26379"}, Username: "u", Password: "p", ClientName: "n", SelectDB: 3, TLSConfig: conf,
		Sentinel:       lib.SentinelOption{MasterSet: "mymaster", Password: "of the Sentinels"},
		SendToReplicas: func(lib.Completed) bool { return true }, ReplicaOnly: true,
	}
	opt := serverOption(of, "server:6379")
	assert.Equal(t, []string{"server:6379"}, opt.InitAddress)
	assert.True(t, opt.ForceSingleClient)
	assert.Equal(t, []any{"u", "p", "n", 3, conf}, []any{opt.Username, opt.Password, opt.ClientName, opt.SelectDB, opt.TLSConfig})
	assert.Zero(t, opt.Sentinel)
	assert.Nil(t, opt.SendToReplicas)
	assert.False(t, opt.ReplicaOnly)
	assert.Equal(t, "sentinel:26379", of.InitAddress[0], "the caller's own")
}

// TestAServerThatSaysNothingIsNotWaitedFor is about rueidis's dials, which no context
// ends.
func TestAServerThatSaysNothingIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = mute.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	opt := serverOption(lib.ClientOption{Dialer: net.Dialer{Timeout: 2 * time.Second}}, mute.Addr().String())
	client, err := reach(ctx, opt)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, mute.Addr().String())
	require.Nil(t, client)
}

// standing is a client that asks a node which stands still.
type standing struct{ knowing }

func (*standing) Do(ctx context.Context, _ lib.Completed) (r lib.RedisResult) {
	<-ctx.Done()
	return r
}

func TestANodeThatStandsStillDoesNotHoldUpTheSearchForAnother(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := nodeOf(t.Context(), &standing{}, "new:1", "06S")
	require.ErrorIs(t, err, errUnknownNode)
	require.Less(t, time.Since(began), 5*time.Second)
}
