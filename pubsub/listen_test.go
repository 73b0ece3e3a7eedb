package pubsub

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// notes is a sink that records its calls.
type notes struct {
	mu       sync.Mutex
	notified []string
	came     chan struct{}
}

func newNotes() *notes { return &notes{came: make(chan struct{}, 100)} }

func (n *notes) note(text string) {
	n.mu.Lock()
	n.notified = append(n.notified, text)
	n.mu.Unlock()
	n.came <- struct{}{}
}

func (n *notes) Acked(again bool) {
	if again {
		n.note("acked again")
		return
	}
	n.note("acked")
}

func (n *notes) Message(payload string) { n.note("message " + payload) }

func (n *notes) Failed(err error) { n.note("failed: " + err.Error()) }

// are requires these calls, and waits for them.
func (n *notes) are(t *testing.T, want ...string) {
	t.Helper()
	for limit := time.After(waitLimit); ; {
		n.mu.Lock()
		notified := append([]string(nil), n.notified...)
		n.mu.Unlock()
		if len(notified) >= len(want) {
			require.Equal(t, want, notified)
			return
		}
		select {
		case <-n.came:
		case <-limit:
			t.Fatalf("reported %q, not %q", notified, want)
		}
	}
}

func TestASinkIsNotifiedAsASubscriptionIs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := New(configFor(server.Addr()))
	first, second, late := newNotes(), newNotes(), newNotes()
	stop := s.Listen("c", first)
	first.are(t, "acked")
	s.Listen("c", second)
	second.are(t, "acked")
	server.Do(t, "PUBLISH", "c", "hello")
	first.are(t, "acked", "message hello")
	second.are(t, "acked", "message hello")
	stop()
	stop()
	server.Do(t, "PUBLISH", "c", "there")
	second.are(t, "acked", "message hello", "message there")
	server.KillClients(t, "pubsub")
	second.are(t, "acked", "message hello", "message there", "acked again")
	require.NoError(t, s.Close())
	second.are(t, "acked", "message hello", "message there", "acked again", "failed: "+transport.ErrClosed.Error())
	s.Listen("c", late)
	late.are(t, "failed: "+transport.ErrClosed.Error())
	first.are(t, "acked", "message hello")
}

// The sink may be established elsewhere: a full server does not refuse the channel.
func TestASinkKnowsARefusedConnectionFromARefusedChannel(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]string{
		"PING":        "failed: redlatch: command not sent: subscribe: redis: ERR max number of clients reached",
		"SUBSCRIBE c": "failed: redis: ERR max number of clients reached",
	} {
		onFakeTime(t, func(f *fakeServer, s *Subscriber) {
			f.refuse = func(command string) string {
				if command == refused {
					return "ERR max number of clients reached"
				}
				return ""
			}
			sink := newNotes()
			s.Listen("c", sink)
			sink.are(t, want)
		})
	}
}

func TestChannelsOfShardsAreListenedToOneByOne(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t) // outside of a cluster all shards are here
	cfg := configFor(server.Addr())
	cfg.Sharded = true
	s := New(cfg)
	defer func() { require.NoError(t, s.Close()) }()
	server.Do(t, "CONFIG", "RESETSTAT")
	sinks := map[string]*notes{}
	for _, name := range []string{"a", "b", "c"} {
		sinks[name] = newNotes()
		defer s.Listen(name, sinks[name])()
	}
	for name, sink := range sinks {
		sink.are(t, "acked")
		require.Equal(t, int64(0), server.Do(t, "PUBLISH", name, "to others"))
		require.Equal(t, int64(1), server.Do(t, "SPUBLISH", name, "to "+name))
		sink.are(t, "acked", "message to "+name)
	}
	require.EqualValues(t, 3, server.CommandStats(t)["ssubscribe"])
	require.Zero(t, server.CommandStats(t)["subscribe"])
	// The new connection also answers PING.
	server.KillClients(t, "pubsub")
	sinks["a"].are(t, "acked", "message to a", "acked again")
	sinks["d"] = newNotes()
	stop := s.Listen("d", sinks["d"])
	sinks["d"].are(t, "acked")
	stop()
	require.Eventually(t, func() bool { return server.CommandStats(t)["sunsubscribe"] == 1 }, waitLimit, time.Millisecond)
}

func TestEachLossAndEachDialThatFailsIsReported(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cfg := configFor(server.Addr())
	lost := make(chan error, 1000)
	cfg.OnLost = func(err error) { lost <- err }
	s := New(cfg)
	defer func() { require.NoError(t, s.Close()) }()
	sink := newNotes()
	defer s.Listen("c", sink)()
	sink.are(t, "acked")
	require.Empty(t, lost)
	server.KillClients(t, "pubsub")
	require.Error(t, <-lost)
	sink.are(t, "acked", "acked again")
	server.Kill()
	for range 3 { // the connection, and dials
		require.Error(t, <-lost)
	}
	server.Restart()
	sink.are(t, "acked", "acked again", "acked again")
}
