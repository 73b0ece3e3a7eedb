package rueidis

import (
	"context"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
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

// keyed knows a key that the node serves.
func keyed(key string) func(context.Context, lib.Client, string) string {
	return func(context.Context, lib.Client, string) string { return key }
}

func TestAKeyIsFoundForAnySlots(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]int64{{0, 0}, {16383, 16383}, {5461, 10922}, {0, 16383}} {
		slot := int64(transport.HashSlot(keyIn(c[0], c[1])))
		assert.GreaterOrEqual(t, slot, c[0])
		assert.LessOrEqual(t, slot, c[1])
	}
	assert.Empty(t, keyIn(5, 4))
	assert.Empty(t, keyIn(-3, -1))
}

func TestANodeThatTheClientDoesNotKnowIsMadeKnownToIt(t *testing.T) {
	t.Parallel()
	client := &knowing{}
	client.nodes = map[string]lib.Client{"old:1": client}
	node, err := nodeOf(t.Context(), client, "old:1", keyed("key"))
	require.NoError(t, err)
	assert.NotNil(t, node)
	assert.Empty(t, client.asked)
	_, err = nodeOf(t.Context(), client, "new:1", keyed(""))
	require.ErrorIs(t, err, errUnknownNode)
	require.ErrorContains(t, err, "new:1")
	assert.Equal(t, []string{"EVAL", tryAgain, "1", anyKey}, client.asked, "it is to look anew")
	client.asked = nil
	node, err = nodeOf(t.Context(), client, "new:1", keyed("06S"))
	require.NoError(t, err)
	assert.NotNil(t, node)
	assert.Equal(t, []string{"EVALSHA", noScript, "1", "06S"}, client.asked, "what no server can have")
	_, err = nodeOf(t.Context(), client, "other:1", keyed("06S"))
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

// standing is a client that asks a node which stands still.
type standing struct{ knowing }

func (*standing) Do(ctx context.Context, _ lib.Completed) (r lib.RedisResult) {
	<-ctx.Done()
	return r
}

func TestAFrozenNodeDoesNotDelayTheSearchForAnother(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := nodeOf(t.Context(), &standing{}, "new:1", keyed("06S"))
	require.ErrorIs(t, err, errUnknownNode)
	require.Less(t, time.Since(began), 5*time.Second)
}
