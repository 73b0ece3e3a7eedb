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
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// startFakeServer starts a server on a real socket, and returns its URL. It replies like Redis, except to one command,
// which is given in upper case.
func startFakeServer(t *testing.T, command, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer context.AfterFunc(t.Context(), func() { _ = c.Close() })()
				serveFake(c, command, answer)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return "redis://" + l.Addr().String()
}

func serveFake(c net.Conn, command, answer string) {
	for in := bufio.NewReader(c); ; {
		args, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		reply := answer
		if strings.ToUpper(args[0]) != command {
			reply = proto(args)
		}
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second)) // a client that has left no longer reads
		if _, err = io.WriteString(c, reply); err != nil {
			return
		}
	}
}

// proto returns the reply of Redis.
func proto(args []string) string {
	switch command := strings.ToUpper(args[0]); {
	case command == "PING":
		return "+PONG\r\n"
	case command == "CLIENT" && len(args) > 1 && args[1] == "ID":
		return ":7\r\n"
	case command == "CLIENT":
		return "$-1\r\n"
	case strings.HasSuffix(command, "SUBSCRIBE"):
		var b strings.Builder
		for _, name := range args[1:] {
			b.WriteString("*3\r\n" + redistest.Bulk(strings.ToLower(command)) + redistest.Bulk(name) + ":1\r\n")
		}
		return b.String()
	}
	return ":0\r\n"
}

// payloads are foreign messages on a lock's channel.
var payloads = []string{
	"", "0", "1", "-1", "2", "\x00", "\xff\xfe", "unlock", "0\r\n+OK\r\n", "99999999999999999999", strings.Repeat("0", long), strings.Repeat("\x00", 8*long),
}

// A message only causes an attempt, so waiters do not acquire the lock before it has been released.
func TestForeignMessagesDoNotGrantLock(t *testing.T) {
	t.Parallel()
	for _, newLock := range []func(*redlatch.Client, string) *rlock.Lock{rlock.New, rfairlock.New} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			hold, err := newLock(w.client, "job").TryLock(t.Context())
			require.NoError(t, err)
			next := make(chan *rlock.Hold, 1)
			go func() {
				h, err := newLock(w.newClient(), "job").Lock(w.bounded())
				assert.NoError(t, err)
				next <- h
			}()
			synctest.Wait()
			channels, err := redis.Strings(w.srv.Do(t, "PUBSUB", "CHANNELS"), nil)
			require.NoError(t, err)
			require.Len(t, channels, 1)
			for _, payload := range payloads {
				w.srv.Do(t, "PUBLISH", channels[0], payload)
			}
			synctest.Wait()
			require.Empty(t, next, "a waiter got the lock")
			freed := time.Now()
			require.NoError(t, hold.Unlock())
			require.NoError(t, (<-next).Unlock())
			require.Zero(t, time.Since(freed))
		})
	}
}

func TestLogTruncatesLongNamesAndErrors(t *testing.T) {
	t.Parallel()
	name, dead := strings.Repeat("n", long), strings.Repeat("d", long)
	refusal := &transport.ServerError{Text: "ERR " + strings.Repeat("e", long)}
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
		"a renewal that fails": {&fake{target: "renew", reply: refusal}, func(ctx context.Context, c *redlatch.Client) error {
			h, err := rlock.New(c, name).TryLock(ctx)
			time.Sleep(time.Minute)
			return errors.Join(err, h.Err())
		}, redlatch.ErrLost},
		"a queue with a dead waiter": {&queueing{&fake{target: "fair_heartbeat", reply: beat}}, func(ctx context.Context, c *redlatch.Client) error {
			_, err := rfairlock.New(c, name).Lock(ctx, rlock.WithWait(5*time.Minute))
			return err
		}, redlatch.ErrNotAcquired},
		"a failing heartbeat": {&queueing{&fake{target: "fair_heartbeat", reply: refusal}}, func(ctx context.Context, c *redlatch.Client) error {
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

// visit requests all paths of a page with text in each parameter. The responses must be short.
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
