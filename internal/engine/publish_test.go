package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

func TestRunGuardedGuardsUntilReply(t *testing.T) {
	t.Parallel()
	script := transport.NewScript("script", "return 1")
	refusal := &transport.ServerError{Text: "NOPERM a release could not notify waiters: ERR The user executing the script can't publish to the channel"}
	var answer error = refusal
	var sent []any
	e, _ := engineOver(t, &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
		sent = slices.Clone(c.Call.Args)
		return nil, answer, true
	}})
	run := func(kind string) error {
		_, err := e.RunGuarded(t.Context(), kind, "channel", func(c *transport.Call) {
			c.Script, c.NumKeys = script, 1
			c.Args = append(c.Args, "key")
		})
		return err
	}
	guarded, plain := []any{"key", "PUBLISH", "channel", "guard"}, []any{"key"}
	for range 2 {
		err := run("plain")
		require.EqualError(t, err, "the user lacks &channel*: redis: "+refusal.Text)
		require.False(t, Passing(err))
		require.False(t, Halfway(err), "nothing was changed")
		require.Equal(t, guarded, sent)
	}
	answer = nil
	require.NoError(t, run("plain"))
	require.Equal(t, guarded, sent)
	require.NoError(t, run("plain"))
	require.Equal(t, plain, sent)
	require.NoError(t, run("fair"))
	require.Equal(t, guarded, sent, "of each kind")

	_, err := e.RunGuarded(t.Context(), "latch", "channel", func(c *transport.Call) { c.Command = "GET" })
	require.NoError(t, err)
	require.False(t, e.MayPublish("latch"), "a command says nothing")
}
