package badinput_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// fakeServer answers like Redis on a real socket, except for one command.
type fakeServer struct {
	command string // in upper case; "" for none
	answer  []byte

	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conns  map[net.Conn]struct{}
	closed bool
}

func startFakeServer(t *testing.T, command, answer string) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fakeServer{command: command, answer: []byte(answer), listener: l, conns: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *fakeServer) url() string { return "redis://" + s.listener.Addr().String() }

func (s *fakeServer) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
		}
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *fakeServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *fakeServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		args, err := readCommand(in)
		if err != nil {
			return
		}
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second)) // a client that left reads nothing
		if _, err = c.Write(s.reply(args)); err != nil {
			return
		}
	}
}

func (s *fakeServer) reply(args []string) []byte {
	if strings.ToUpper(args[0]) == s.command {
		return s.answer
	}
	return []byte(proto(args))
}

// proto returns the reply of Redis.
func proto(args []string) string {
	command := strings.ToUpper(args[0])
	switch {
	case command == "PING":
		return "+PONG\r\n"
	case command == "CLIENT" && len(args) > 1 && args[1] == "ID":
		return ":7\r\n"
	case command == "CLIENT":
		return "$-1\r\n"
	case command == "SUBSCRIBE" || command == "UNSUBSCRIBE":
		var b strings.Builder
		for _, name := range args[1:] {
			b.WriteString("*3\r\n" + bulk(strings.ToLower(command)) + bulk(name) + ":1\r\n")
		}
		return b.String()
	}
	return ":0\r\n"
}

func bulk(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readNumber(in)
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readNumber(in)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func readNumber(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// payloads are foreign messages on a lock's channel.
var payloads = []string{
	"", "0", "1", "-1", "2", "\x00", "\xff\xfe", "unlock", "0\r\n+OK\r\n", "99999999999999999999", strings.Repeat("0", mebibyte), strings.Repeat("\x00", 8*mebibyte),
}

// A message only causes an attempt: waiters acquire the lock after its release, not before.
func TestForeignMessagesGrantNoLock(t *testing.T) {
	t.Parallel()
	for kind, newLock := range map[string]func(*redlatch.Client, string) *rlock.Lock{"plain": rlock.New, "fair": rfairlock.New} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Shared(t)
			holder, waiter := open(t, srv), open(t, srv)
			name := redistest.Key(t)
			hold, err := newLock(holder, name).TryLock(t.Context())
			require.NoError(t, err)
			got := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
			defer cancel()
			go func() {
				next, err := newLock(waiter, name).Lock(ctx)
				if err == nil {
					err = next.Unlock()
				}
				got <- err
			}()
			channel := listened(t, srv, codec.LockChannel(name))
			for range testlevel.Rounds(1, 20) {
				for _, payload := range payloads {
					srv.Do(t, "PUBLISH", channel, payload)
				}
			}
			select {
			case err := <-got:
				require.Fail(t, "a waiter got the lock", "%v", err)
			default:
			}
			require.NoError(t, hold.Err())
			freed := time.Now()
			require.NoError(t, hold.Unlock())
			require.NoError(t, <-got)
			assert.Less(t, time.Since(freed), soon/2)
		})
	}
}

func open(t *testing.T, srv *redistest.Server) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), srv.URL(), redlatch.WithPollCap(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// listened waits for a subscribed channel with the prefix.
func listened(t *testing.T, srv *redistest.Server, prefix string) string {
	t.Helper()
	for limit := time.Now().Add(soon); ; {
		for _, channel := range srv.Channels(t) {
			if strings.HasPrefix(channel, prefix) {
				return channel
			}
		}
		require.True(t, time.Now().Before(limit), "no listener")
		<-time.After(5 * time.Millisecond)
	}
}

func TestNoLogLineRepeatsALongNameOrError(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", mebibyte)
	dead := strings.Repeat("d", mebibyte)
	long := &transport.ServerError{Text: "ERR " + strings.Repeat("e", mebibyte)}
	beat := []any{int64(5000), []any{dead, "1"}, []any{}, int64(2)}
	for what, c := range map[string]struct {
		fake transport.Transport
		act  func(context.Context, *redlatch.Client) error
		want error
	}{
		"a lost lock": {newFake(), func(ctx context.Context, c *redlatch.Client) error {
			h, err := rlock.New(c, name).TryLock(ctx, rlock.WithLease(time.Second))
			time.Sleep(time.Minute)
			return errors.Join(err, h.Err())
		}, redlatch.ErrLost},
		"a renewal that fails": {&fake{target: "renew", reply: long}, func(ctx context.Context, c *redlatch.Client) error {
			h, err := rlock.New(c, name).TryLock(ctx)
			time.Sleep(time.Minute)
			return errors.Join(err, h.Err())
		}, redlatch.ErrLost},
		"a queue with a dead waiter": {&queueing{&fake{target: "fair_heartbeat", reply: beat}}, func(ctx context.Context, c *redlatch.Client) error {
			_, err := rfairlock.New(c, name).Lock(ctx, rlock.WithWait(5*time.Minute))
			return err
		}, redlatch.ErrNotAcquired},
		"a queue that cannot be looked after": {&queueing{&fake{target: "fair_heartbeat", reply: long}}, func(ctx context.Context, c *redlatch.Client) error {
			_, err := rfairlock.New(c, name).Lock(ctx, rlock.WithWait(time.Minute))
			return err
		}, redlatch.ErrNotAcquired},
	} {
		synctest.Test(t, func(t *testing.T) {
			log, logger := redistest.NewJournal()
			client, err := redlatch.NewWithTransport(c.fake, redlatch.WithLogger(logger.With("who", "us")))
			require.NoError(t, err)
			require.ErrorIs(t, c.act(t.Context(), client), c.want)
			require.NoError(t, client.Close())
			require.NotEmpty(t, log.Lines(), "%s is not logged", what)
			for _, line := range log.Lines() {
				require.Less(t, len(line), 8<<10, what)
				require.Contains(t, line, "who=us")
			}
		})
	}
}

var pages = []value{
	{what: "page", make: func(w *world) any { return w.page() }},
	{what: "closed page", make: func(w *world) any {
		p := w.page()
		require.NoError(w.t, p.Close())
		return p
	}},
	mistake[*redlatchui.Page]("nil page", nilDeref),
}

var pageOptions = vals(redlatchui.Options{}, redlatchui.Options{Every: -1}, redlatchui.Options{Every: durations[len(durations)-2]},
	redlatchui.Options{Pattern: texts[len(texts)-1], Hosts: texts}, redlatchui.Options{Pattern: "[", Hosts: []string{""}})

func (w *world) page() *redlatchui.Page {
	w.t.Helper()
	p, err := redlatchui.New(w.client, redlatchui.Options{Access: func(*http.Request) redlatchui.Access { return redlatchui.FullAccess }})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, p.Close()) })
	return p
}

func newPage(client *redlatch.Client, o redlatchui.Options) error {
	p, err := redlatchui.New(client, o)
	if err != nil {
		return err
	}
	return p.Close()
}

// visit requests all of a page with text in each parameter. Each response must be short.
func visit(p *redlatchui.Page, text string) error {
	is := url.QueryEscape(text)
	form := url.Values{"holder": {text}, "dead": {text}, "owner": {text}, "reason": {text}}.Encode()
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "http://localhost/?q="+is+"&only="+is+"&sort="+is+"&page="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/lock?name="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/lock?hash="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/unlock?name="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/evict?name=a&owner="+is, nil),
		httptest.NewRequest(http.MethodPost, "http://localhost/unlock?name="+is, strings.NewReader(form)),
		httptest.NewRequest(http.MethodPost, "http://localhost/evict?name="+is, strings.NewReader(text)),
	} {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Dest", text)
		got := httptest.NewRecorder()
		p.ServeHTTP(got, r)
		if got.Code == 0 || got.Body.Len() >= mebibyte {
			return fmt.Errorf("%s is answered with %d and %d bytes", r.URL.Path, got.Code, got.Body.Len())
		}
	}
	return nil
}
