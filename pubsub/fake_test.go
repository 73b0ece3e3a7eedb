package pubsub

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// fakeServer is a scripted server behind in-memory pipes, for fake time.
type fakeServer struct {
	t *testing.T

	mute    atomic.Bool                 // take commands and answer none
	stalled chan struct{}               // until it is closed, commands are not even taken; see goDeaf
	away    atomic.Pointer[error]       // dials fail with this
	refuse  func(command string) string // an error to answer with, or ""; set while no command is under way

	mu    sync.Mutex
	peer  *peer // the newest connection
	dials []time.Time
	sent  []string // every command received
}

// peer is the server's end of one connection.
type peer struct {
	conn net.Conn
	mu   sync.Mutex
}

func (f *fakeServer) dial(context.Context) (redis.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials = append(f.dials, time.Now())
	if err := f.away.Load(); err != nil {
		return nil, *err
	}
	ours, theirs := net.Pipe()
	f.peer = &peer{conn: theirs}
	go f.serve(f.peer)
	return redis.NewConn(ours, 0, 0), nil
}

func (f *fakeServer) serve(p *peer) {
	defer func() { _ = p.conn.Close() }()
	in := bufio.NewReader(stalledReader{f, p.conn})
	for {
		args, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.sent = append(f.sent, strings.Join(args, " "))
		f.mu.Unlock()
		if !f.mute.Load() {
			p.write(f.answer(args))
		}
	}
}

type stalledReader struct {
	f    *fakeServer
	conn net.Conn
}

func (e stalledReader) Read(b []byte) (int, error) {
	n, err := e.conn.Read(b)
	for errors.Is(err, os.ErrDeadlineExceeded) {
		<-e.f.stalled
		if err = e.conn.SetReadDeadline(time.Time{}); err == nil {
			n, err = e.conn.Read(b)
		}
	}
	return n, err
}

// stopReading makes the newest connection read nothing until resume. Pipes have no buffer, so the
// client's next write blocks.
func (f *fakeServer) stopReading() (hear func()) {
	f.stalled = make(chan struct{})
	require.NoError(f.t, f.newest().conn.SetReadDeadline(time.Now()))
	synctest.Wait()
	return sync.OnceFunc(func() { close(f.stalled) })
}

func (f *fakeServer) answer(args []string) string {
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

// array returns an array of three without the last element.
func array(word, name string) string {
	return "*3\r\n" + redistest.Bulk(word) + redistest.Bulk(name)
}

func (p *peer) write(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.conn, text) // a client that left is none of its business
}

// push sends unsolicited data.
func (f *fakeServer) push(text string) {
	f.newest().write(text)
	synctest.Wait()
}

func (f *fakeServer) newest() *peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peer
}

func (f *fakeServer) publish(word, name, payload string) {
	f.push(redistest.Array(word, name, payload))
}

func (f *fakeServer) cut() { require.NoError(f.t, f.newest().conn.Close()) }

func (f *fakeServer) goAway(text string) {
	err := errors.New(text)
	f.away.Store(&err)
}

func (f *fakeServer) comeBack() { f.away.Store(nil) }

func (f *fakeServer) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

func (f *fakeServer) dialTimes() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.dials)
}

// onFakeTime runs body with a fake server and a Subscriber to it.
func onFakeTime(t *testing.T, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	inBubble(t, &fakeServer{}, Config{}, body)
}

// onServer is a parallel test with f.
func onServer(t *testing.T, f *fakeServer, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	t.Parallel()
	inBubble(t, f, Config{}, body)
}

// onShard is onServer for shard channels.
func onShard(t *testing.T, f *fakeServer, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	t.Parallel()
	inBubble(t, f, Config{Sharded: true}, body)
}

func inBubble(t *testing.T, f *fakeServer, cfg Config, body func(f *fakeServer, s *Subscriber)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.t, cfg.Dial = t, f.dial
		s := New(cfg)
		defer mustClose(t, s) // also after a failure: nothing may stay in the bubble
		body(f, s)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit bounds every wait.
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
