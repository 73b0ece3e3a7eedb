package replication

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

func TestBatchEndsWithOneWait(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		require.Empty(t, p.Dials(), "no dial before the first call")
		require.Equal(t, "OK", has(t, b, set("a"), time.Second, 1))
		require.EqualValues(t, 1, has(t, b, eval("b"), time.Second, 1))
		require.EqualValues(t, 1, has(t, b, eval("c"), time.Second, 1))
		require.Equal(t, []string{
			"SET a v", "WAIT 1 1000",
			"EVAL " + script.Text() + " 1 b v", "WAIT 1 1000",
			"EVALSHA " + script.SHA() + " 1 c v", "WAIT 1 1000",
		}, p.commands())
		require.Len(t, p.Dials(), 1)
	})
}

// A call's timeout includes its time in the queue. The last call of a batch gets its full timeout.
func TestQueuedCallsShareOneWait(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": silence})
		first := start(b, set("first"), time.Second)
		synctest.Wait()
		var rest []chan outcome
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			rest = append(rest, start(b, set("later"), time.Second))
		}
		time.Sleep(700 * time.Millisecond)
		p.Say(0, ":0\r\n") // the first has waited for a second
		require.Zero(t, await(t, first).have)
		synctest.Wait()
		require.Equal(t, []string{"SET first v", "WAIT 1 1000", "SET later v", "SET later v", "SET later v", "WAIT 1 300"}, p.commands())
		p.Say(0, ":1\r\n")
		for _, came := range rest {
			require.Equal(t, outcome{"OK", 1, nil}, await(t, came))
		}
		time.Sleep(2 * time.Second)
		late := start(b, set("late"), 100*time.Microsecond)
		synctest.Wait()
		require.Equal(t, []string{"SET late v", "WAIT 1 1"}, p.commands(), "no WAIT without an end")
		p.Say(0, ":1\r\n")
		require.EqualValues(t, 1, await(t, late).have)
	})
}

func TestBatchesHoldAtMostThousandCalls(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		calls := make([]*transport.Call, 2*batchMax+2)
		for i := range calls {
			calls[i] = set("k")
		}
		for _, came := range together(b, time.Second, calls...) {
			require.EqualValues(t, 1, await(t, came).have)
		}
		seen := p.commands()
		require.Len(t, seen, len(calls)+3)
		require.Equal(t, "WAIT 1 1000", seen[batchMax])
	})
}

func TestForgottenScriptIsResentWithWait(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		has(t, b, eval("a"), time.Second, 1)
		p.Replies(map[string]string{"EVALSHA": failure("NOSCRIPT"), "EVAL": ":2\r\n", "SET": "+OK\r\n", "WAIT": ":1\r\n"})
		p.commands()
		all := together(b, time.Second, eval("b"), set("c"))
		require.Equal(t, outcome{int64(2), 1, nil}, await(t, all[0]))
		require.Equal(t, outcome{"OK", 1, nil}, await(t, all[1]))
		require.Equal(t, []string{
			"EVALSHA " + script.SHA() + " 1 b v", "SET c v", "WAIT 1 1000",
			"EVAL " + script.Text() + " 1 b v", "WAIT 1 1000",
		}, p.commands(), "only that one once more, and a WAIT for it")
		p.Replies(map[string]string{"EVAL": failure("NOSCRIPT"), "EVALSHA": failure("NOSCRIPT"), "WAIT": ":1\r\n"})
		require.True(t, transport.IsCode(await(t, start(b, eval("d"), time.Second)).err, "NOSCRIPT"), "a server that never knows the script is not retried forever")
	})
}

func TestRejectionAffectsOnlyItsCall(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(map[string]string{"SET": "+OK\r\n", "HSET": failure("WRONGTYPE"), "WAIT": ":1\r\n"})
		all := together(b, time.Second, set("a"), &transport.Call{Command: "HSET"}, set("b"))
		require.EqualValues(t, 1, await(t, all[0]).have)
		require.True(t, transport.IsCode(await(t, all[1]).err, "WRONGTYPE"))
		require.EqualValues(t, 1, await(t, all[2]).have)

		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": failure("NOPERM")})
		require.True(t, transport.IsCode(await(t, start(b, set("a"), time.Second)).err, "NOPERM"))
		require.Len(t, p.Dials(), 1, "the connection is good")
		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": "+many\r\n"})
		require.ErrorIs(t, await(t, start(b, set("a"), time.Second)).err, transport.ErrUncertain)
	})
}

func TestBrokenIdleConnectionFailsNoCall(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		has(t, b, set("a"), time.Second, 1)
		p.Cut()
		has(t, b, set("b"), time.Second, 1)
		require.Len(t, p.Dials(), 2)
	})
}

func TestSilentServerIsAbandoned(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(nil)
		began := time.Now()
		o := await(t, start(b, set("a"), time.Second))
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.ErrorContains(t, o.err, "no reply within 4s")
		require.Equal(t, time.Second+command, time.Since(began), "what WAIT may take, and an answer")
		require.Len(t, p.Dials(), 1, "a connection that was new is not tried again")
	})
}

func TestUnreachableServerIsRetriedAfterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		p := serving()
		p.Refuse(refused)
		b := opened(t, p.Dial)
		for range 10 {
			o := await(t, start(b, set("a"), time.Second))
			require.ErrorIs(t, o.err, transport.ErrNotSent)
			require.ErrorIs(t, o.err, refused)
		}
		dials := p.Dials()
		for i, most := 1, clock.DefaultMin; i < len(dials); i, most = i+1, min(2*most, clock.DefaultMax) {
			pause := dials[i].Sub(dials[i-1])
			require.LessOrEqual(t, pause, most)
			require.GreaterOrEqual(t, pause, most/2)
		}
		p.Refuse(nil)
		has(t, b, set("a"), time.Second, 1)
		p.Cut()
		p.Refuse(refused)
		began := time.Now()
		require.ErrorIs(t, await(t, start(b, set("a"), time.Second)).err, transport.ErrUncertain, "it was sent on the connection that is cut")
		require.Zero(t, time.Since(began), "it has worked since")
	})
}

func TestDemotedServerIsLeft(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(map[string]string{"SET": failure("READONLY"), "WAIT": ":0\r\n"})
		for range 5 {
			require.True(t, transport.IsCode(await(t, start(b, set("a"), time.Second)).err, "READONLY"))
		}
		dials := p.Dials()
		require.Len(t, dials, 5)
		for i := 1; i < len(dials); i++ {
			require.GreaterOrEqual(t, dials[i].Sub(dials[i-1]), clock.DefaultMin/2, "not without a pause")
		}
		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": ":1\r\n"})
		has(t, b, set("a"), time.Second, 1)
		has(t, b, set("a"), time.Second, 1)
		require.Len(t, p.Dials(), 6)
	})
}

func TestConnectionClosesAfterIdleMinute(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		has(t, b, set("a"), time.Second, 1)
		time.Sleep(idleTime - time.Second)
		has(t, b, set("a"), time.Second, 1)
		time.Sleep(idleTime - time.Second)
		require.Equal(t, 1, p.Open())
		time.Sleep(2 * time.Second)
		require.Equal(t, 0, p.Open())
		has(t, b, set("a"), time.Second, 1)
		require.Len(t, p.Dials(), 2)
	})
}

func TestWithdrawnCallsAreNotSent(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(map[string]string{"SET": "+OK\r\n", "WAIT": silence})
		first := start(b, set("first"), time.Second)
		synctest.Wait()
		call := set("queued")
		queued := start(b, call, time.Second)
		require.True(t, call.Abandon())
		p.Say(0, ":1\r\n")
		require.EqualValues(t, 1, await(t, first).have)
		require.ErrorIs(t, await(t, queued).err, transport.ErrNotSent)
		require.NotContains(t, strings.Join(p.commands(), "\n"), "queued")

		call = set("left")
		left := start(b, call, time.Second)
		synctest.Wait()
		require.False(t, call.Abandon())
		p.Cut()
		o := await(t, left)
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.ErrorIs(t, o.err, io.EOF, "why the reply was lost")
		synctest.Wait()
		require.Equal(t, []string{"SET left v", "WAIT 1 1000"}, p.commands(), "it was sent once, and its caller no longer waits")
	})
}

func TestAbandonedCallWithUnknownScriptWasNotSent(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		has(t, b, eval("a"), time.Second, 1)
		p.Replies(map[string]string{"EVALSHA": failure("NOSCRIPT"), "WAIT": silence})
		call := eval("b")
		came := start(b, call, time.Second)
		synctest.Wait()
		require.False(t, call.Abandon())
		p.Say(0, ":1\r\n")
		require.ErrorIs(t, await(t, came).err, transport.ErrNotSent)
	})
}

func TestCloseFailsAllCalls(t *testing.T) {
	onPeer(t, func(p *peer, b *Batcher) {
		t := p.t
		p.Replies(nil)
		sent := start(b, set("sent"), time.Hour)
		synctest.Wait()
		queued := start(b, set("queued"), time.Hour)
		b.Close()
		require.Len(t, queued, 1, "Close waits for the end of all calls")
		b.Close()
		o := await(t, sent)
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.ErrorIs(t, o.err, transport.ErrClosed)
		for _, came := range []chan outcome{queued, start(b, set("late"), time.Second)} {
			o := await(t, came)
			require.ErrorIs(t, o.err, transport.ErrNotSent)
			require.ErrorIs(t, o.err, transport.ErrClosed)
		}
	})
}

func TestCloseInterruptsDialAndPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := opened(t, func(ctx context.Context) (redis.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		dialling := start(slow, set("a"), time.Second)
		synctest.Wait()
		slow.Close()
		require.ErrorIs(t, await(t, dialling).err, transport.ErrClosed)

		broken := opened(t, func(context.Context) (redis.Conn, error) { return nil, errors.New("broken") })
		for range 8 {
			await(t, start(broken, set("a"), time.Second))
		}
		paused := start(broken, set("a"), time.Second)
		synctest.Wait()
		began := time.Now()
		broken.Close()
		require.ErrorIs(t, await(t, paused).err, transport.ErrClosed)
		require.Zero(t, time.Since(began))
		New(Config{}).Close()
	})
}

func TestDialTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, func(ctx context.Context) (redis.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		require.ErrorIs(t, await(t, start(b, set("a"), time.Second)).err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(began))

		p := serving()
		odd := opened(t, func(ctx context.Context) (redis.Conn, error) {
			conn, err := p.Dial(ctx)
			return struct{ redis.Conn }{conn}, err
		})
		require.ErrorContains(t, await(t, start(odd, set("a"), time.Second)).err, "redis.ConnWithTimeout")
		synctest.Wait()
		require.Zero(t, p.Open())
	})
}
