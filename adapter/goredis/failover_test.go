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

// actedWithin is the bound on how long after the first Sentinel names another master
// connections to the former one end.
const actedWithin = 1500 * time.Millisecond

// ask runs a plain command and waits for its outcome.
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

// write runs INCR every few milliseconds until it works on another server than former,
// and returns when it last worked on former.
func writeUntilMoved(t *testing.T, tr transport.Transport, key string, former *redistest.Server) (last time.Time) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		_, err := ask(tr, "INCR", key)
		if err != nil {
			continue
		}
		info, err := ask(tr, "CONFIG", "GET", "port")
		if err != nil {
			continue
		}
		if at := info.([]any)[1].([]byte); former.Addr() != "127.0.0.1:"+string(at) {
			return last
		}
		last = time.Now()
	}
	t.Fatal("the transport stays with the former master")
	return last
}

func TestASwitchOfMastersIsActedOnAlthoughTheOldOneWorks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts func(t *testing.T) []redistest.Option
	}{
		{"redis", func(*testing.T) []redistest.Option { return nil }},
		{"valkey", func(t *testing.T) []redistest.Option {
			t.Helper()
			return []redistest.Option{redistest.WithBinary(redistest.ValkeyBinary(t))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := redistest.StartSentinels(t, 5*time.Second, c.opts(t)...)
			tr := over(t, redis.NewFailoverClient(failoverOptions(set, "", nil)))
			defer func() { require.NoError(t, tr.Close()) }()
			key, former := redistest.Key(t), set.Master(t)
			_, err := ask(tr, "INCR", key)
			require.NoError(t, err)
			sub, err := tr.Subscribe(t.Context(), key)
			require.NoError(t, err)
			wait := set.WatchSwitch(t)
			set.Failover(t)
			last := writeUntilMoved(t, tr, key, former)
			reported := wait()
			late := last.Sub(reported.At)
			t.Logf("the last write to the former master came %v after the first +switch-master", late.Round(time.Millisecond))
			require.Less(t, late, actedWithin)
			select {
			case e := <-sub.Events():
				require.True(t, e.Gap)
			case <-time.After(30 * time.Second):
				t.Fatal("no gap")
			}
			n, err := ask(tr, "PUBLISH", key, "hello")
			require.NoError(t, err)
			require.Equal(t, int64(1), n, "it listens on the new master")
		})
	}
}

func TestAFrozenMasterIsLeftWhenTheSentinelsNameAnother(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Second)
	tr := over(t, redis.NewFailoverClient(failoverOptions(set, "", nil)))
	defer func() { require.NoError(t, tr.Close()) }()
	key, former := redistest.Key(t), set.Master(t)
	_, err := ask(tr, "INCR", key)
	require.NoError(t, err)
	sub, err := tr.Subscribe(t.Context(), key)
	require.NoError(t, err)
	time.Sleep(3 * time.Second) // the Sentinels have been heard: they say so every two
	wait := set.WatchSwitch(t)
	former.Pause()
	writeUntilMoved(t, tr, key, former)
	took := time.Since(wait().At)
	t.Logf("a write to the new master %v after the first +switch-master", took.Round(time.Millisecond))
	require.Less(t, took, actedWithin+time.Second)
	require.True(t, (<-sub.Events()).Gap)
	former.Resume()
}

// pair is two masters, of which Sentinels name one to a client: what go-redis asks
// Sentinels for, the test decides, and what they say, the test publishes.
type pair struct {
	servers [2]*redistest.Server
	named   atomic.Int32
	dials   atomic.Int32
	tr      transport.Transport
	log     *redistest.Journal
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{servers: [2]*redistest.Server{redistest.Start(t), redistest.Start(t)}}
	log, logger := redistest.NewJournal()
	p.log = log
	client := redis.NewClient(&redis.Options{
		Addr: failoverAddr,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			p.dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, p.servers[p.named.Load()].Addr())
		},
	})
	p.tr = over(t, client, redlatch.WithLogger(logger))
	t.Cleanup(func() { assert.NoError(t, p.tr.Close()) })
	return p
}

// says publishes on one server, as a Sentinel does, which server is master,
// and returns how many connections received it.
func (p *pair) says(t *testing.T, on, master int, epoch int64) int64 {
	t.Helper()
	host, port, err := net.SplitHostPort(p.servers[master].Addr())
	require.NoError(t, err)
	n, isNumber := p.servers[on].Do(t, "PUBLISH", failover.Channel,
		fmt.Sprintf("127.0.0.1,26379,id,%d,mymaster,%s,%s,%d", epoch, host, port, epoch)).(int64)
	require.True(t, isNumber)
	return n
}

// heard waits until the transport listens to the Sentinels on a server.
func (p *pair) heard(t *testing.T, on, master int, epoch int64) {
	t.Helper()
	require.Eventually(t, func() bool { return p.says(t, on, master, epoch) == 1 }, 30*time.Second, 5*time.Millisecond)
}

// begun waits until the transport has heard the first word, which the first server is
// the master by, and has looked into it.
func (p *pair) begun(t *testing.T, epoch int64) {
	t.Helper()
	require.Equal(t, 0, p.at(t))
	p.heard(t, 0, 0, epoch)
	// Two connections, one to see where the master is before each of them, and one when
	// the Sentinel was heard.
	require.Eventually(t, func() bool { return p.dials.Load() == 5 }, 30*time.Second, time.Millisecond)
}

// at returns which server answers.
func (p *pair) at(t *testing.T) int {
	t.Helper()
	reply, err := ask(p.tr, "CONFIG", "GET", "port")
	if err != nil {
		return -1 // it is connecting
	}
	for i, s := range p.servers {
		if s.Addr() == "127.0.0.1:"+string(reply.([]any)[1].([]byte)) {
			return i
		}
	}
	return -1
}

func (p *pair) movesTo(t *testing.T, want int, within time.Duration) {
	t.Helper()
	began := time.Now()
	require.Eventually(t, func() bool { return p.at(t) == want }, within, 5*time.Millisecond)
	t.Logf("moved within %v", time.Since(began).Round(time.Millisecond))
}

func TestTheWordOfOneSentinelIsEnough(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.begun(t, 1)
	require.Equal(t, 0, p.at(t))
	p.named.Store(1)
	require.EqualValues(t, 1, p.says(t, 0, 1, 2))
	p.movesTo(t, 1, 2*time.Second)
	require.NotEmpty(t, p.log.Lines("another server is master now"))

	// Back again; the Sentinel that go-redis asks knows a little later.
	p.heard(t, 1, 1, 2)
	require.EqualValues(t, 1, p.says(t, 1, 0, 3))
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, 1, p.at(t), "no Sentinel that it asks has named another")
	p.named.Store(0)
	p.movesTo(t, 0, 2*time.Second)
}

func TestASwitchBeforeTheFirstWordIsNoticedWithIt(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	require.Equal(t, 0, p.at(t))
	p.named.Store(1)
	p.heard(t, 0, 1, 5)
	p.movesTo(t, 1, 2*time.Second)
}

func TestStaleMessagesMoveNoConnection(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.begun(t, 7)
	dials := p.dials.Load()
	for range 20 {
		p.says(t, 0, 1, 6)
		p.says(t, 0, 0, 7)
		p.servers[0].Do(t, "PUBLISH", failover.Channel, "no,such,message")
	}
	require.Equal(t, 0, p.at(t))
	require.Equal(t, dials, p.dials.Load(), "no server was asked")
}

func TestAServerThatIsReadOnlyIsLeft(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.begun(t, 1)
	host, port, err := net.SplitHostPort(p.servers[1].Addr())
	require.NoError(t, err)
	p.servers[0].Do(t, "REPLICAOF", host, port)
	_, err = ask(p.tr, "SET", redistest.Key(t), "v")
	require.True(t, transport.IsCode(err, "READONLY"), "%v", err)
	// A new connection is still led to the former master, so the client asks again
	// until that changes, even if the Sentinels seem healthy.
	time.Sleep(100 * time.Millisecond)
	p.named.Store(1)
	require.Eventually(t, func() bool {
		p.says(t, 0, 0, 1)
		return p.at(t) == 1
	}, 8*time.Second, 50*time.Millisecond)
}

func TestAServerThatIsReadOnlyWhereReplicasAreWaitedForIsLeft(t *testing.T) {
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
	host, port, err := net.SplitHostPort(p.servers[1].Addr())
	require.NoError(t, err)
	p.servers[0].Do(t, "REPLICAOF", host, port)
	err = write()
	require.True(t, transport.IsCode(err, "READONLY"), "%v", err)
	p.movesTo(t, 1, 2*time.Second)
}

func TestSentinelsThatAreSilentAreAsked(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	require.Equal(t, 0, p.at(t))
	p.named.Store(1)
	p.movesTo(t, 1, failover.Silence+failover.AskEvery+2*time.Second)
}

func TestSentinelsThatCannotBeSubscribedToAreAsked(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, s := range p.servers {
		s.Do(t, "ACL", "SETUSER", "default", "resetchannels", "&mine:*")
	}
	require.Equal(t, 0, p.at(t))
	time.Sleep(failover.AskEvery + failover.AskEvery/2)
	p.named.Store(1)
	p.movesTo(t, 1, failover.AskEvery+2*time.Second)
	require.NotEmpty(t, p.log.Lines("cannot subscribe to"))
}
