package pubsub

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestU19WaiterTimeoutDoesNotSilenceOthers(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		leaver, stayer := mustSubscribe(t, s, "c"), mustSubscribe(t, s, "c")
		leaver.Close()
		leaver.Close()
		synctest.Wait()
		require.Equal(t, []string{"PING", "SUBSCRIBE c"}, f.Commands(), "the two share one")
		f.publish("message", "c", "0")
		require.Equal(t, transport.Event{Payload: "0"}, awaitEvent(t, stayer))
		requireNoEvent(t, leaver)
		require.NoError(t, leaver.Err())
		stayer.Close()
		synctest.Wait()
		require.Equal(t, []string{"PING", "SUBSCRIBE c", "UNSUBSCRIBE c"}, f.Commands())
		require.Equal(t, Stats{Connected: true, Dials: 1}, s.Stats())
	})
}

// This test uses real time, because a blocked reader holds the mutex, and a bubble would wait for
// it forever.
func TestU27BlockedListenerDelaysNoOtherSubscription(t *testing.T) {
	t.Parallel()
	s := &Subscriber{table: table{channels: map[string]*channel{}, most: batchSize}}
	stuck, _ := pushTable(t, s)
	sharer := &listener{sub: s, events: make(chan transport.Event, 1)}
	s.table.join("acked", sharer)
	const messages = 1000
	for range 3 {
		read := make(chan struct{})
		go func() {
			defer close(read)
			for n := range messages {
				takePush(s, 3, []byte("message"), []byte("acked"), []byte(strconv.Itoa(n)))
			}
		}()
		select {
		case <-read:
		case <-time.After(waitLimit):
			require.FailNow(t, "the reader is blocked")
		}
		require.Equal(t, transport.Event{Payload: "0", Coalesced: messages - 1}, awaitEvent(t, sharer))
	}
	require.Equal(t, transport.Event{Payload: "0", Coalesced: 3*messages - 1}, awaitEvent(t, stuck))
}

func TestU16KilledPubSubConnectionReconnectsAndReportsGap(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		var all []transport.Subscription
		for i := range 500 {
			all = append(all, mustSubscribe(t, s, fmt.Sprint("channel:", i/2)))
		}
		require.Equal(t, Stats{Channels: 250, Listeners: 500, Connected: true, Dials: 1}, s.Stats())
		for round := range 3 {
			before := len(f.Commands())
			f.Cut()
			for _, l := range all {
				require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
			}
			require.Len(t, f.Commands(), before+2, "PING, and one command for all channels")
			f.publish("message", "channel:7", fmt.Sprint(round))
			require.Equal(t, transport.Event{Payload: fmt.Sprint(round)}, awaitEvent(t, all[14]))
			require.Equal(t, transport.Event{Payload: fmt.Sprint(round)}, awaitEvent(t, all[15]))
		}
	})
}

func TestCloseEndsPendingAndEstablishedSubscriptions(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		const n = 1000
		var established []transport.Subscription
		for i := range n {
			established = append(established, mustSubscribe(t, s, fmt.Sprint("old:", i/2)))
		}
		f.mute.Store(true)
		var pending []<-chan error
		for i := range n {
			pending = append(pending, subscribeLater(s, fmt.Sprint("new:", i/2)))
		}
		synctest.Wait()
		require.Equal(t, Stats{Channels: n, Listeners: 2 * n, Pending: n, Connected: true, Dials: 1}, s.Stats())
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { assert.NoError(t, s.Close()) })
		}
		closers.Wait()
		for _, done := range pending {
			require.Equal(t, transport.ErrClosed, <-done)
		}
		for _, l := range established {
			require.Equal(t, transport.ErrClosed, requireFailed(t, l))
			l.Close()
		}
		_, err := s.Subscribe(t.Context(), "c")
		require.Equal(t, transport.ErrClosed, err)
	})
}

func TestCloseBeforeFirstUseDialsNothing(t *testing.T) {
	t.Parallel()
	s := New(Config{Dial: func(context.Context) (redis.Conn, error) { panic("dialled") }})
	mustClose(t, s)
	mustClose(t, s)
	_, err := s.Subscribe(t.Context(), "c")
	require.Equal(t, transport.ErrClosed, err)
	require.Panics(t, func() { New(Config{}) })
}

// notes is a sink that records its calls.
type notes struct {
	mu       sync.Mutex
	notified []string
}

func (n *notes) note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notified = append(n.notified, text)
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

// are requires that these calls were made since the last check.
func (n *notes) are(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Equal(t, want, n.notified)
	n.notified = nil
}

func TestSinkGetsSubscriptionEvents(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		first, second, late := &notes{}, &notes{}, &notes{}
		stop := s.Listen("c", first)
		first.are(t, "acked")
		s.Listen("c", second)
		second.are(t, "acked")
		f.publish("message", "c", "hello")
		first.are(t, "message hello")
		stop()
		stop()
		f.publish("message", "c", "there")
		second.are(t, "message hello", "message there")
		f.Cut()
		time.Sleep(time.Second)
		second.are(t, "acked again")
		require.NoError(t, s.Close())
		closed := "failed: " + transport.ErrClosed.Error()
		second.are(t, closed)
		s.Listen("c", late)
		late.are(t, closed)
		require.Empty(t, first.notified)
	})
}

// A full server rejects the connection, not the channel, so another server may accept the sink.
func TestSinkDistinguishesRejectedConnectionFromRejectedChannel(t *testing.T) {
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
			sink := &notes{}
			s.Listen("c", sink)
			sink.are(t, want)
		})
	}
}

func TestShardChannelsAreSubscribedOneByOne(t *testing.T) {
	onShard(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		sink, other := &notes{}, &notes{}
		stop := s.Listen("a", sink)
		sink.are(t, "acked")
		s.Listen("b", other)
		synctest.Wait()
		f.publish("smessage", "a", "to a")
		sink.are(t, "message to a")
		f.Cut()
		time.Sleep(time.Second)
		sink.are(t, "acked again")
		other.are(t, "acked", "acked again")
		stop()
		synctest.Wait()
		commands := f.Commands()
		require.Equal(t, []string{"PING", "SSUBSCRIBE a", "SSUBSCRIBE b", "PING"}, commands[:4])
		require.ElementsMatch(t, []string{"SSUBSCRIBE a", "SSUBSCRIBE b"}, commands[4:6])
		require.Equal(t, []string{"SUNSUBSCRIBE a"}, commands[6:])
	})
}

func TestLossReconnectAndFailedDialAreReported(t *testing.T) {
	t.Parallel()
	var lost []error
	again := 0
	log, logger := redistest.NewJournal()
	cfg := Config{OnLost: func(err error) { lost = append(lost, err) }, OnReconnect: func() { again++ }, Logger: logger}
	inBubble(t, &fakeServer{}, cfg, func(f *fakeServer, s *Subscriber) {
		t := f.t
		sink := &notes{}
		s.Listen("c", sink)
		sink.are(t, "acked")
		require.Empty(t, lost)
		require.Zero(t, again)
		f.Cut()
		time.Sleep(time.Second)
		sink.are(t, "acked again")
		require.Len(t, lost, 1)
		require.Equal(t, 1, again)
		f.Refuse(errNobody)
		f.Cut()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Greater(t, len(lost), 3, "the connection, and dials")
		require.False(t, slices.Contains(lost, nil))
		require.Equal(t, 1, again)
		f.Refuse(nil)
		time.Sleep(time.Second)
		sink.are(t, "acked again")
		require.Equal(t, 2, again)
		s.Reconnect()
		time.Sleep(time.Second)
		sink.are(t, "acked again")
		require.Len(t, log.Lines(`level=WARN msg="redlatch: pub/sub connection lost"`), 2)
		require.Len(t, log.Lines(`level=DEBUG msg="redlatch: pub/sub connection lost"`), 1, "Reconnect")
		require.Empty(t, log.Lines(`level=WARN msg="redlatch: pub/sub connection failed"`), "that it was lost says so")
	})
}
