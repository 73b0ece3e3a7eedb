package pubsub

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/scripted"
	"github.com/redlatch/redlatch/transport"
)

// fakeServer is a server in memory, for use in a synctest bubble.
type fakeServer struct {
	scripted.Server
	t      *testing.T
	mute   atomic.Bool                 // ignore commands
	refuse func(command string) string // an error reply, or ""; set between commands
}

func (f *fakeServer) answer(_ int, args []string) string {
	if f.mute.Load() {
		return scripted.Silence
	}
	if f.refuse != nil {
		if text := f.refuse(strings.Join(args, " ")); text != "" {
			return "-" + text + "\r\n"
		}
	}
	if args[0] == "PING" {
		return "+PONG\r\n"
	}
	var b strings.Builder
	for _, name := range args[1:] {
		b.WriteString(array(strings.ToLower(args[0]), name))
		b.WriteString(":1\r\n")
	}
	return b.String()
}

// array returns an array of three elements, except for the last one.
func array(word, name string) string {
	return "*3\r\n" + redistest.Bulk(word) + redistest.Bulk(name)
}

// push sends unsolicited data.
func (f *fakeServer) push(text string) {
	f.Say(0, text)
	synctest.Wait()
}

func (f *fakeServer) publish(word, name, payload string) {
	f.push(redistest.Array(word, name, payload))
}

// onFakeTime runs body in a synctest bubble, with a fake server and a Subscriber connected to it.
func onFakeTime(t *testing.T, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	inBubble(t, &fakeServer{}, Config{}, body)
}

// onServer runs body as a parallel test, with a Subscriber connected to f.
func onServer(t *testing.T, f *fakeServer, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	t.Parallel()
	inBubble(t, f, Config{}, body)
}

// onShard is like onServer, but for shard channels.
func onShard(t *testing.T, f *fakeServer, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	t.Parallel()
	inBubble(t, f, Config{Sharded: true}, body)
}

func inBubble(t *testing.T, f *fakeServer, cfg Config, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.t, cfg.Dial = t, f.Dial
		f.Answer(f.answer)
		s := New(cfg)
		defer mustClose(t, s) // even after a failure: goroutines must not outlive the bubble
		body(f, s)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const waitLimit = 30 * time.Second

func mustSubscribe(t testing.TB, s *Subscriber, channel string) transport.Subscription {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	l, err := s.Subscribe(ctx, channel)
	require.NoError(t, err)
	return l
}

// subscribeLater subscribes on another goroutine.
func subscribeLater(s *Subscriber, channel string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Subscribe(context.Background(), channel)
		done <- err
	}()
	return done
}

func awaitEvent(t testing.TB, l transport.Subscription) transport.Event {
	t.Helper()
	select {
	case e, ok := <-l.Events():
		require.True(t, ok, "subscription failed: %v", l.Err())
		return e
	case <-time.After(waitLimit):
		require.FailNow(t, "no event")
		return transport.Event{}
	}
}

func requireFailed(t testing.TB, l transport.Subscription) error {
	t.Helper()
	select {
	case e, ok := <-l.Events():
		require.False(t, ok, "an event instead of the end: %v", e)
	case <-time.After(waitLimit):
		require.FailNow(t, "subscription goes on")
	}
	require.Error(t, l.Err())
	return l.Err()
}

func requireNoEvent(t testing.TB, l transport.Subscription) {
	t.Helper()
	select {
	case e, ok := <-l.Events():
		require.FailNow(t, "unexpected", "event %v, open %v", e, ok)
	default:
	}
}

func mustClose(t testing.TB, s *Subscriber) {
	t.Helper()
	require.NoError(t, s.Close())
	st := s.Stats()
	require.Zero(t, st.Channels)
	require.Zero(t, st.Listeners)
	require.False(t, st.Connected)
}
