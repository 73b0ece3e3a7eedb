package replication

import (
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

func redirect(b *Batcher, call *transport.Call, asking bool) chan outcome {
	came := make(chan outcome, 2)
	b.Replicate(call, 1, time.Second, func(reply any, have int64, err error) { came <- outcome{reply, have, err} }, asking)
	return came
}

func TestCallForMigratingSlotIsSentAfterAsking(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(map[string]string{"ASKING": "+OK\r\n", "SET": "+OK\r\n", "EVAL": ":1\r\n", "WAIT": ":1\r\n"})
		require.Equal(t, outcome{"OK", 1, nil}, await(t, redirect(b, set("a"), true)))
		require.Equal(t, outcome{"OK", 1, nil}, await(t, redirect(b, set("b"), false)))
		require.Equal(t, []string{"ASKING", "SET a v", "WAIT 1 1000", "SET b v", "WAIT 1 1000"}, p.commands())

		p.Replies(map[string]string{
			"ASKING": failure("NOPERM"), "EVAL": failure("MOVED"), "EVALSHA": failure("NOSCRIPT"), "SET": "+OK\r\n", "WAIT": ":1\r\n",
		})
		require.True(t, transport.IsCode(await(t, redirect(b, eval("a"), true)).err, "MOVED"), "the call's own error counts")
		require.Equal(t, outcome{"OK", 1, nil}, await(t, start(b, set("a"), time.Second)), "each reply is its own call's")
	})
}

func TestAbandonedRedirectedCallIsNotSent(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		call := set("a")
		require.True(t, call.Claim(0), "somewhere else")
		require.False(t, call.Abandon())
		require.ErrorIs(t, await(t, redirect(b, call, false)).err, transport.ErrNotSent)
		require.Empty(t, p.commands())
	})
}

// The server may lack replicas.
func TestRejectedCallEndsBeforeWait(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(map[string]string{"SET": "+OK\r\n", "HSET": failure("MOVED"), "WAIT": silence})
		all := together(b, time.Second, &transport.Call{Command: "HSET"}, set("a"))
		synctest.Wait()
		require.Len(t, all[0], 1)
		require.True(t, transport.IsCode(await(t, all[0]).err, "MOVED"))
		require.Empty(t, all[1])
		p.Cut()
		require.ErrorIs(t, await(t, all[1]).err, transport.ErrUncertain)
		require.Empty(t, all[0], "it has ended once")
	})
}

// replacing returns a Batcher and a function that replaces the client's other connection.
func replacing(t *testing.T, p *peer) (b *Batcher, replace func()) {
	t.Helper()
	var replaced atomic.Value
	replaced.Store(make(chan struct{}))
	b = New(Config{Dial: p.Dial, DialTimeout: time.Second, Command: command, Replaced: func() <-chan struct{} {
		return replaced.Load().(chan struct{})
	}})
	t.Cleanup(b.Close)
	return b, func() { close(replaced.Swap(make(chan struct{})).(chan struct{})) }
}

func TestWaitRestartsAfterClientMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := serving()
		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": silence})
		b, replace := replacing(t, p)
		came := start(b, set("a"), time.Second)
		synctest.Wait()
		replace()
		p.Say(0, ":1\r\n")
		synctest.Wait()
		require.Empty(t, came)
		require.Len(t, p.Dials(), 2)
		p.Say(0, ":2\r\n")
		require.Equal(t, outcome{"OK", 2, nil}, await(t, came))

		came = start(b, set("b"), time.Second)
		synctest.Wait()
		time.Sleep(time.Second)
		replace()
		p.Say(0, ":1\r\n")
		require.Equal(t, outcome{"OK", 0, nil}, await(t, came), "no time for another WAIT")
	})
}

func TestPossiblyRunCallIsUncertainWithoutConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := serving()
		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": silence})
		b, replace := replacing(t, p)
		sent := start(b, set("a"), time.Second)
		synctest.Wait()
		p.Refuse(context.DeadlineExceeded)
		replace()
		p.Say(0, ":1\r\n")
		o := await(t, sent)
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.NotErrorIs(t, o.err, transport.ErrNotSent)
		require.Zero(t, o.have)
	})
}

// A full server answers the first command with an error and hangs up without running any command.
func TestFullServerRanNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, isFull := serving(), true
		b := opened(t, func(ctx context.Context) (redis.Conn, error) {
			if !isFull {
				return p.Dial(ctx)
			}
			ours, theirs := net.Pipe()
			go func() {
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				_, _ = io.WriteString(theirs, "-ERR max number of clients reached\r\n")
				_ = theirs.Close()
			}()
			return redis.NewConn(ours, 0, 0), nil
		})
		for _, came := range together(b, time.Second, set("a"), eval("b")) {
			o := await(t, came)
			require.ErrorIs(t, o.err, transport.ErrNotSent)
			require.NotErrorIs(t, o.err, transport.ErrUncertain)
			require.ErrorContains(t, o.err, "max number of clients")
		}
		isFull = false
		began := time.Now()
		has(t, b, set("a"), time.Second, 1)
		require.GreaterOrEqual(t, time.Since(began), clock.DefaultMin/2, "a pause after a useless connection")
		p.Cut() // calls sent on this connection may have run
		isFull = true
		o := await(t, start(b, set("b"), time.Second))
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.NotErrorIs(t, o.err, transport.ErrNotSent)
	})
}

func TestConnectionIsReplacedWithClientsOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := serving()
		b, replace := replacing(t, p)
		for _, dials := range []int{1, 1, 2, 2} {
			if len(p.Dials()) == 1 && dials == 2 {
				replace()
			}
			has(t, b, set("a"), time.Second, 1)
			require.Len(t, p.Dials(), dials)
		}
		require.Equal(t, slices.Repeat([]string{"SET a v", "WAIT 1 1000"}, 4), p.commands(), "sent once each")
	})
}
