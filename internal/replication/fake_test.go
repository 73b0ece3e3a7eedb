package replication

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/scripted"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	command = 3 * time.Second
	silence = scripted.Silence
)

// peer is a server in memory, for use in a synctest bubble.
type peer struct {
	scripted.Server
	t    *testing.T // of onPeer
	seen int        // commands returned before
}

// commands returns the commands received since it was last called.
func (p *peer) commands() []string {
	fresh := p.Commands()[p.seen:]
	p.seen += len(fresh)
	return fresh
}

// serving returns a server with one replica.
func serving() *peer {
	p := &peer{}
	p.Buffered = true
	p.Replies(map[string]string{"SET": "+OK\r\n", "EVAL": ":1\r\n", "EVALSHA": ":1\r\n", "WAIT": ":1\r\n"})
	return p
}

// opened returns a Batcher that is closed when the test ends.
func opened(t *testing.T, dial func(context.Context) (redis.Conn, error)) *Batcher {
	t.Helper()
	b := New(Config{Dial: dial, DialTimeout: 5 * time.Second, Command: command})
	t.Cleanup(b.Close)
	return b
}

// onPeer runs body in a synctest bubble, with a Batcher connected to a server that has one replica.
func onPeer(t *testing.T, body func(p *peer, b *Batcher)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := serving()
		p.t = t
		body(p, opened(t, p.Dial))
	})
}

type outcome struct {
	reply any
	have  int64
	err   error
}

// start starts a call and returns a channel for its outcome. The channel has room for an erroneous
// second outcome.
func start(b *Batcher, call *transport.Call, timeout time.Duration) chan outcome {
	came := make(chan outcome, 2)
	b.Replicate(call, 1, timeout, func(reply any, have int64, err error) { came <- outcome{reply, have, err} }, false)
	return came
}

const patience = 20 * time.Second

func await(t *testing.T, came <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-came:
		return o
	case <-time.After(patience):
		t.Fatal("done has not run")
		return outcome{}
	}
}

// has runs a call and requires that the given number of replicas have it.
func has(t *testing.T, b *Batcher, call *transport.Call, timeout time.Duration, want int64) any {
	t.Helper()
	o := await(t, start(b, call, timeout))
	require.NoError(t, o.err)
	require.Equal(t, want, o.have)
	return o.reply
}

func set(key string) *transport.Call {
	return &transport.Call{Command: "SET", NumKeys: 1, Args: []any{key, "v"}}
}

var script = transport.NewScript("write", "redis.call('SET', KEYS[1], ARGV[1]) return 1")

func eval(key string) *transport.Call {
	return &transport.Call{Script: script, NumKeys: 1, Args: []any{key, "v"}}
}

func failure(code string) string { return fmt.Sprintf("-%s said the server\r\n", code) }

// together starts calls so that they are sent in one batch.
func together(b *Batcher, timeout time.Duration, calls ...*transport.Call) []chan outcome {
	all := make([]chan outcome, len(calls))
	for i, call := range calls {
		came := make(chan outcome, 2)
		all[i] = came
		r := &request{
			call: call, replicas: 1, until: time.Now().Add(timeout),
			done: func(reply any, have int64, err error) { came <- outcome{reply, have, err} },
		}
		if i == len(calls)-1 {
			b.add(r) // wakes the Batcher
			break
		}
		b.mu.Lock()
		b.queue = append(b.queue, r)
		b.mu.Unlock()
	}
	return all
}
