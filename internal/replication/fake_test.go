package replication

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

const (
	command = 3 * time.Second
	silence = "" // no reply
)

// peer is a scripted server behind net.Pipe, for fake time.
type peer struct {
	t *testing.T // of onPeer

	mu      sync.Mutex // guards what follows
	answer  func(args []string) string
	dialErr error
	dials   []time.Time
	seen    []string
	conns   []net.Conn
	gone    int // connections that have ended
}

func (p *peer) dial(context.Context) (redis.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials = append(p.dials, time.Now())
	if p.dialErr != nil {
		return nil, p.dialErr
	}
	ours, theirs := net.Pipe()
	p.conns = append(p.conns, theirs)
	go p.serve(theirs)
	return redis.NewConn(ours, 0, 0), nil
}

func (p *peer) serve(c net.Conn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gone++
		_ = c.Close()
	}()
	in := bufio.NewReader(c)
	replies := make(chan string, 4*batchMax) // a pipe has no buffer: the writer must not wait for the reader
	defer close(replies)
	go func() {
		for reply := range replies {
			if reply != silence {
				_, _ = io.WriteString(c, reply)
			}
		}
	}()
	for {
		args, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen = append(p.seen, strings.Join(args, " "))
		reply := p.answer(args)
		p.mu.Unlock()
		replies <- reply
	}
}

// says sets the replies by command.
func (p *peer) says(replies map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(args []string) string { return replies[args[0]] }
}

func (p *peer) commands() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

func (p *peer) dialled() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.dials...)
}

// cut breaks the latest connection.
func (p *peer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conns[len(p.conns)-1].Close()
}

// refuse makes dials fail with err, if not nil.
func (p *peer) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialErr = err
}

// serving returns a server with one replica.
func serving() *peer {
	p := &peer{}
	p.says(map[string]string{"SET": "+OK\r\n", "EVAL": ":1\r\n", "EVALSHA": ":1\r\n", "WAIT": ":1\r\n"})
	return p
}

// opened returns a Batcher that is closed with the test.
func opened(t *testing.T, dial func(context.Context) (redis.Conn, error)) *Batcher {
	t.Helper()
	b := New(Config{Dial: dial, DialTimeout: 5 * time.Second, Command: command})
	t.Cleanup(b.Close)
	return b
}

// onPeer runs body on fake time, with a Batcher to a server that has one replica.
func onPeer(t *testing.T, body func(p *peer, b *Batcher)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := serving()
		p.t = t
		body(p, opened(t, p.dial))
	})
}

type outcome struct {
	reply any
	have  int64
	err   error
}

// start starts a call. The channel has room for a second outcome.
func start(b *Batcher, call *transport.Call, timeout time.Duration) chan outcome {
	came := make(chan outcome, 2)
	b.Replicate(call, 1, timeout, func(reply any, have int64, err error) { came <- outcome{reply, have, err} })
	return came
}

// patience bounds waits on a real server.
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

// has runs a call that so many replicas must have.
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

// say sends an unsolicited reply on the latest connection.
func (p *peer) say(reply string) {
	p.mu.Lock()
	c := p.conns[len(p.conns)-1]
	p.mu.Unlock()
	_, _ = io.WriteString(c, reply)
}

// together starts calls that are sent in one batch.
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
			b.add(r) // which wakes the Batcher
			break
		}
		b.mu.Lock()
		b.queue = append(b.queue, r)
		b.mu.Unlock()
	}
	return all
}

// open returns the number of connections.
func (p *peer) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) - p.gone
}
