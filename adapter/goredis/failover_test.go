package goredis

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// ask runs a plain command and returns its outcome.
func ask(tr transport.Transport, command string, args ...any) (any, error) {
	type outcome struct {
		reply any
		err   error
	}
	came := make(chan outcome, 1)
	call := &transport.Call{Command: command, Args: args}
	if len(args) > 0 {
		call.NumKeys = 1
	}
	tr.Start(call, func(reply any, err error) { came <- outcome{reply, err} })
	o := <-came
	return o.reply, o.err
}

// pair is two masters behind fake Sentinels: the test answers the queries of go-redis and
// publishes the Sentinels' messages.
type pair struct {
	servers [2]*redistest.Server
	named   atomic.Int32
	dials   atomic.Int32
	tr      transport.Transport
	log     *redistest.Journal
}

func newPair(tb testing.TB) *pair {
	tb.Helper()
	p := &pair{servers: [2]*redistest.Server{redistest.Start(tb), redistest.Start(tb)}}
	log, logger := redistest.NewJournal()
	p.log = log
	client := redis.NewClient(&redis.Options{
		Addr: failoverAddr,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			p.dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, p.servers[p.named.Load()].Addr())
		},
	})
	p.tr = over(tb, client, redlatch.WithLogger(logger))
	tb.Cleanup(func() { assert.NoError(tb, p.tr.Close()) })
	return p
}

// On one server, says publishes a Sentinel's message that names the master. It returns how many
// connections received the message.
func (p *pair) says(tb testing.TB, on, master int, epoch int64) int64 {
	tb.Helper()
	host, port, err := net.SplitHostPort(p.servers[master].Addr())
	require.NoError(tb, err)
	n, isNumber := p.servers[on].Do(tb, "PUBLISH", failover.Channel,
		fmt.Sprintf("127.0.0.1,26379,id,%d,mymaster,%s,%s,%d", epoch, host, port, epoch)).(int64)
	require.True(tb, isNumber)
	return n
}

// heard waits until the transport has subscribed to the Sentinels on a server.
func (p *pair) heard(tb testing.TB, on, master int, epoch int64) {
	tb.Helper()
	require.Eventually(tb, func() bool { return p.says(tb, on, master, epoch) == 1 }, 30*time.Second, 5*time.Millisecond)
}

// begun waits until the transport has handled the first message, which reports that the first
// server is the master.
func (p *pair) begun(tb testing.TB, epoch int64) {
	tb.Helper()
	require.Equal(tb, 0, p.at(tb))
	p.heard(tb, 0, 0, epoch)
	// The transport looks the master up before each of its two connections and after the
	// Sentinel's message.
	require.Eventually(tb, func() bool { return p.dials.Load() >= 5 }, 30*time.Second, time.Millisecond)
}

// at returns the index of the server that replies.
func (p *pair) at(tb testing.TB) int {
	tb.Helper()
	reply, err := ask(p.tr, "CONFIG", "GET", "port")
	if err != nil {
		return -1 // still connecting
	}
	for i, s := range p.servers {
		if s.Addr() == "127.0.0.1:"+string(reply.([]any)[1].([]byte)) {
			return i
		}
	}
	return -1
}

func (p *pair) movesTo(tb testing.TB, want int) {
	tb.Helper()
	require.Eventually(tb, func() bool { return p.at(tb) == want }, time.Minute, 5*time.Millisecond)
}

// asked waits until the transport has looked the master up again.
func (p *pair) asked(tb testing.TB, before int32) {
	tb.Helper()
	require.Eventually(tb, func() bool { return p.dials.Load() > before }, time.Minute, time.Millisecond)
}

func TestOneSentinelMessageMovesConnections(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.begun(t, 1)
	require.Equal(t, 0, p.at(t))
	p.named.Store(1)
	require.EqualValues(t, 1, p.says(t, 0, 1, 2))
	p.movesTo(t, 1)
	require.NotEmpty(t, p.log.Lines("master changed: "))

	// Back to the first server; the Sentinel that go-redis queries reports it a little later.
	p.heard(t, 1, 1, 2)
	before := p.dials.Load()
	require.EqualValues(t, 1, p.says(t, 1, 0, 3))
	p.asked(t, before)
	require.Equal(t, 1, p.at(t), "no queried Sentinel reported another master")
	p.named.Store(0)
	p.movesTo(t, 0)
}

func TestSwitchBeforeFirstMessageIsDetected(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	require.Equal(t, 0, p.at(t))
	p.named.Store(1)
	p.heard(t, 0, 1, 5)
	p.movesTo(t, 1)
}

func TestStaleSentinelMessagesIgnored(t *testing.T) {
	t.Parallel()
	redistest.InRealTime(t, "go-redis queries Sentinels after 2.5 s of silence", func(tb testing.TB) {
		tb.Helper()
		p := newPair(tb)
		p.begun(tb, 7)
		dials := p.dials.Load()
		for range 20 {
			p.says(tb, 0, 1, 6)
			p.says(tb, 0, 0, 7)
			p.servers[0].Do(tb, "PUBLISH", failover.Channel, "no,such,message")
		}
		require.Equal(tb, 0, p.at(tb))
		require.Equal(tb, dials, p.dials.Load(), "no query was sent")
	})
}

// makeReplica makes the first server a replica of the second one.
func (p *pair) makeReplica(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(p.servers[1].Addr())
	require.NoError(t, err)
	p.servers[0].Do(t, "REPLICAOF", host, port)
}

func TestReadOnlyServerIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.begun(t, 1)
	p.makeReplica(t)
	before := p.dials.Load()
	_, err := ask(p.tr, "SET", redistest.Key(t), "v")
	require.True(t, transport.IsCode(err, "READONLY"), "%v", err)
	// A new connection still reaches the former master, so the client keeps looking the master up,
	// even if the Sentinels seem healthy.
	p.asked(t, before)
	p.named.Store(1)
	require.Eventually(t, func() bool {
		p.says(t, 0, 0, 1)
		return p.at(t) == 1
	}, time.Minute, 50*time.Millisecond)
}

func TestReadOnlyServerIsReplacedDuringReplicaWait(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.begun(t, 1)
	write := func() error {
		came := make(chan error, 1)
		call := &transport.Call{Command: "SET", NumKeys: 1, Args: []any{redistest.Key(t), "v"}}
		p.tr.(transport.Replicator).Replicate(call, 1, time.Millisecond, func(_ any, _ int64, err error) { came <- err })
		return <-came
	}
	require.NoError(t, write())
	p.named.Store(1)
	p.makeReplica(t)
	err := write()
	require.True(t, transport.IsCode(err, "READONLY"), "%v", err)
	p.movesTo(t, 1)
}

func TestSilentSentinelsArePolled(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	require.Equal(t, 0, p.at(t))
	p.named.Store(1)
	p.movesTo(t, 1)
}

func TestUnsubscribedSentinelsArePolled(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, s := range p.servers {
		s.Do(t, "ACL", "SETUSER", "default", "resetchannels", "&mine:*")
	}
	require.Equal(t, 0, p.at(t))
	p.asked(t, p.dials.Load())
	p.named.Store(1)
	p.movesTo(t, 1)
	require.NotEmpty(t, p.log.Lines("cannot subscribe to"))
}
