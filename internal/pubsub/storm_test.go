package pubsub

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// refusingForNow returns a server that rejects the given channels while down is true.
func refusingForNow(t *testing.T, down *atomic.Bool, text string, channels ...string) *fakeServer {
	t.Helper()
	return &fakeServer{t: t, refuse: func(command string) string {
		for _, name := range channels {
			if down.Load() && strings.HasSuffix(command, "SUBSCRIBE "+name) {
				return text
			}
		}
		return ""
	}}
}

// A node that lost a slot sends SUNSUBSCRIBE for its channels, and rejects them while no node serves it.
func TestUnservedSlotAffectsNoOtherChannel(t *testing.T) {
	var down atomic.Bool
	onShard(t, refusingForNow(t, &down, "CLUSTERDOWN Hash slot not served", "lost"), func(f *fakeServer, s *Subscriber) {
		t := f.t
		lost, others := mustSubscribe(t, s, "lost"), []transport.Subscription{}
		for _, name := range []string{"a", "b", "c", "d"} {
			others = append(others, mustSubscribe(t, s, name))
		}
		down.Store(true)
		f.push(array("sunsubscribe", "lost") + ":4\r\n")
		time.Sleep(9500 * time.Millisecond)
		require.Equal(t, uint64(1), s.Stats().Dials)
		require.Less(t, len(f.Commands()), 30)
		for _, other := range others {
			requireNoEvent(t, other)
		}
		require.NoError(t, lost.Err())

		// After a lost connection, the others are subscribed again immediately.
		f.Cut()
		start := time.Now()
		for _, other := range others {
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, other))
		}
		require.Less(t, time.Since(start), time.Second)
		time.Sleep(10 * time.Second)
		require.Equal(t, uint64(2), s.Stats().Dials)
		require.Greater(t, strings.Count(strings.Join(f.Commands(), "\n"), "SSUBSCRIBE lost"), 17, "each second")

		requireNoEvent(t, lost)
		down.Store(false)
		start = time.Now()
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, lost))
		require.LessOrEqual(t, time.Since(start), time.Second)
		require.Equal(t, uint64(2), s.Stats().Dials)
	})
}

// again is a sink that listens again after a failure.
type again struct {
	failed chan error
	acked  chan struct{}
}

func (a *again) Acked(bool)       { a.acked <- struct{}{} }
func (*again) Message(string)     {}
func (a *again) Failed(err error) { a.failed <- err }

// listen listens to a channel and returns the number of failures before the acknowledgement.
func (a *again) listen(t *testing.T, s *Subscriber, channel string) (failures int) {
	t.Helper()
	for {
		stop := s.Listen(channel, a)
		select {
		case err := <-a.failed:
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.True(t, transport.IsCode(err, "TRYAGAIN"), "%v", err)
			failures++
		case <-a.acked:
			stop()
			return failures
		}
	}
}

func TestTemporarilyRejectedChannelIsRetriedEverySecond(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	onShard(t, refusingForNow(t, &down, "TRYAGAIN Multiple keys request during rehashing of slot", "lost"), func(f *fakeServer, s *Subscriber) {
		t := f.t
		mustSubscribe(t, s, "a")
		start := time.Now()
		_, err := s.Subscribe(t.Context(), "lost")
		require.True(t, transport.IsCode(err, "TRYAGAIN"), "%v", err)
		require.Zero(t, time.Since(start), "the first reply is reported immediately")
		time.AfterFunc(9500*time.Millisecond, func() { down.Store(false) })
		a := &again{failed: make(chan error, 1), acked: make(chan struct{}, 1)}
		s.Listen("lost", a)() // which leaves immediately
		require.Equal(t, 9, a.listen(t, s, "lost"))
		require.Equal(t, 10*time.Second, time.Since(start))
		synctest.Wait()
		require.Equal(t, Stats{Channels: 1, Listeners: 1, Connected: true, Dials: 1}, s.Stats())
	})
}

func TestRejectedChannelIsForgottenAfterUnsubscribe(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	onShard(t, refusingForNow(t, &down, "CLUSTERDOWN Hash slot not served", "lost"), func(f *fakeServer, s *Subscriber) {
		t := f.t
		mustSubscribe(t, s, "a")
		_, err := s.Subscribe(t.Context(), "lost")
		require.True(t, transport.IsCode(err, "CLUSTERDOWN"), "%v", err)
		time.Sleep(3 * time.Second)
		require.Equal(t, Stats{Channels: 1, Listeners: 1, Connected: true, Dials: 1}, s.Stats())
		require.Equal(t, []string{"PING", "SSUBSCRIBE a", "SSUBSCRIBE lost"}, f.Commands())
	})
}

// The address may now lead to a different server.
func TestServerRejectingEverythingIsRedialedAfterPauses(t *testing.T) {
	t.Parallel()
	for refusal, greets := range map[string]bool{
		"NOAUTH Authentication required.": false, "BUSY Redis is busy running a script": true, "CLUSTERDOWN The cluster is down": true,
		"LOADING Redis is loading the dataset in memory": true, "MASTERDOWN Link with MASTER is down": true,
	} {
		synctest.Test(t, func(t *testing.T) {
			var down atomic.Bool
			f := &fakeServer{t: t, refuse: func(command string) string {
				if down.Load() && (command != "PING" || !greets) {
					return refusal
				}
				return ""
			}}
			f.Answer(f.answer)
			s := New(Config{Dial: f.Dial})
			defer mustClose(t, s)
			a, b := mustSubscribe(t, s, "a"), mustSubscribe(t, s, "b")
			synctest.Wait()
			down.Store(true)
			f.Cut()
			_, err := s.Subscribe(t.Context(), "c")
			var se *transport.ServerError
			require.ErrorAs(t, err, &se)
			require.Equal(t, refusal, se.Text)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Greater(t, len(f.Dials()), 10)
			require.Less(t, len(f.Dials()), 30, "the pauses grow")
			down.Store(false)
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, a))
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, b))
		})
	}
}
