package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// A busy node must not determine the choice for the lifetime of the client: peers that use SSUBSCRIBE would never be
// woken.
func TestBusyNodeDoesNotDecidePublishCommand(t *testing.T) {
	t.Parallel()
	for refusal, want := range map[string]string{
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": "SPUBLISH",
		"ERR max number of clients reached":                                      "SPUBLISH",
		"LOADING Redis is loading the dataset in memory":                         "SPUBLISH",
		"ERR Unknown subcommand or wrong number of arguments for 'SHARDNUMSUB'.": "PUBLISH",
		"NOPERM this user has no permissions to run the 'pubsub' command":        "PUBLISH",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "SPUBLISH", one, two)
			w.do(func() { w.servers[one].refuses = map[string]string{"PUBSUB": refusal} })
			a := w.cfg
			got, err := a.publishCommand(t.Context(), transport.ShardingAuto)
			require.NoError(t, err, refusal)
			require.Equal(t, want, got, refusal)
			a.Seeds = []string{one}
			_, err = a.publishCommand(t.Context(), transport.ShardingAuto)
			if want == "SPUBLISH" {
				require.ErrorIs(t, err, transport.ErrNotSent, refusal)
				require.ErrorContains(t, err, refusal)
			}
		})
	}
}

func TestExplicitShardingQueriesNoNode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[transport.Sharding]string{transport.ShardingOn: "SPUBLISH", transport.ShardingOff: "PUBLISH"} {
		cfg := Config{Seeds: []string{one}} // a dial would panic
		got, err := cfg.publishCommand(t.Context(), mode)
		require.NoError(t, err, mode)
		require.Equal(t, want, got, mode)
	}
}

// Behind a proxy a node that is down accepts connections, as does a frozen one.
func TestSilentNodeDoesNotDecidePublishCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "SPUBLISH", one, two)
		w.do(func() { w.servers[one].silent = true })
		a := w.cfg
		got, err := a.publishCommand(t.Context(), transport.ShardingAuto)
		require.NoError(t, err)
		require.Equal(t, "SPUBLISH", got)
		w.do(func() { w.servers[one].gate = make(chan struct{}) })
		began := time.Now()
		got, err = a.publishCommand(t.Context(), transport.ShardingAuto)
		require.NoError(t, err)
		require.Equal(t, "SPUBLISH", got)
		require.Equal(t, 5*time.Second, time.Since(began), "the time of a dial")
		w.do(func() { w.servers[one].gate = nil })

		a.Seeds = []string{one}
		_, err = a.publishCommand(t.Context(), transport.ShardingAuto)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.NotErrorIs(t, err, transport.ErrUncertain, "nothing was left to do")
	})
}

// brokenConn is a connection of a pool whose dial failed.
type brokenConn struct {
	redis.Conn
	err error
}

func (c brokenConn) Do(string, ...any) (any, error) { return nil, c.err }
func (c brokenConn) Err() error                     { return c.err }
func (brokenConn) Close() error                     { return nil }

func TestDialErrorDoesNotDecidePublishCommand(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{&transport.ServerError{Text: "ERR no route"}, redis.Error("WRONGPASS invalid password")} {
		for _, dial := range []redisconn.NodeDial{
			func(context.Context, string) (redis.Conn, error) { return nil, failure },
			func(context.Context, string) (redis.Conn, error) { return brokenConn{err: failure}, nil },
		} {
			a := Config{Seeds: []string{one}, Dial: dial, Conn: redisconn.Config{Command: time.Second, DialTimeout: time.Second}}
			got, err := a.publishCommand(t.Context(), transport.ShardingAuto)
			require.ErrorIs(t, err, transport.ErrNotSent, "%q", got)
			require.ErrorContains(t, err, failure.Error())
		}
	}
}
