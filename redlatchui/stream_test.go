package redlatchui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlock"
)

func request(ctx context.Context, address, path string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = address + ":4711"
	return r
}

const notLive = "so this one is not updated"

func TestViewerCannotCrowdOutOthers(t *testing.T) {
	t.Parallel()
	one := func(int) string { return "198.51.100.1" }
	for what, c := range map[string]struct {
		names  string
		viewer func(i int) string
	}{
		"no locks":       {"invented:", one},
		"locks":          {"held:", one},
		"many addresses": {"held:", func(i int) string { return fmt.Sprintf("[2001:db8::%x]", i+1) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				for i := range 80 {
					s.Do(t, "HSET", fmt.Sprint("held:", i), program.SomeOwner, 1)
				}
				s.Do(t, "HSET", "mine", program.SomeOwner, 1)
				page := open(t, s, redlatchui.Options{})
				var tabs []*tab
				for i := range 64 {
					tabs = append(tabs, openTab(page, request(t.Context(), c.viewer(i), fmt.Sprint("/events?name=", c.names, i))))
				}
				lost := func() (all []*tab) {
					synctest.Wait()
					for _, b := range tabs {
						select {
						case <-b.over:
							all = append(all, b)
						default:
						}
					}
					return all
				}
				require.Empty(t, lost())
				// The viewer can open one more page, which has no stream if the stream would displace a
				// lock.
				status, text := load(t, page, request(t.Context(), c.viewer(70), "/lock?name=held:70"))
				require.Equal(t, http.StatusOK, status)
				require.Contains(t, text, "Held by")
				if c.names == "held:" {
					require.Contains(t, text, notLive)
					require.NotContains(t, text, "data-stream")
					require.Empty(t, lost())
				} else {
					require.NotContains(t, text, notLive)
					require.Contains(t, text, "data-stream")
				}
				// Another viewer gets a page with a stream.
				status, text = load(t, page, request(t.Context(), "198.51.100.2", "/lock?name=mine"))
				require.Equal(t, http.StatusOK, status)
				require.Contains(t, text, `data-stream="events?name=mine"`)
				require.NotContains(t, text, notLive)
				displaced := lost()
				require.NotEmpty(t, displaced)
				for _, b := range displaced {
					last := ""
					for len(b.events) > 0 {
						last = <-b.events
					}
					require.Contains(t, last, "data: last\n\n", "its page reloads once more")
				}
			})
		})
	}
}

// visit opens tabs that reload their page at each event, for some time, and returns how often clients
// sent a command.
func visit(t *testing.T, s *server, path, stream, command string, tabs int) int {
	t.Helper()
	page := open(t, s, redlatchui.Options{Every: 300 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Millisecond)
	defer cancel()
	s.count(command)
	for range tabs {
		go func() {
			for b := openTab(page, request(ctx, "192.0.2.1", stream)); ; {
				_ = answer(page, request(ctx, "192.0.2.1", path))
				select {
				case <-b.events:
				case <-b.over:
					return
				}
			}
		}()
	}
	<-ctx.Done()
	synctest.Wait()
	n := s.count(command)
	time.Sleep(time.Minute)
	return n
}

func TestTwentyTabsShareOneScan(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		path, stream, command string
		least                 int
	}{
		"all locks": {"/", "/events", "SCAN", 3 * 6},
		"numbers":   {"/?only=numbers", "/events?about=numbers", "SCAN", 6},
		"clients":   {"/who", "/events", "SCAN", 3 * 6},
		"one lock":  {"/lock?name=a", "/events?name=a", "HSCAN", 2},
		"server":    {"/server", "/events?about=server", "CONFIG", 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				s.Do(t, "HSET", "a", program.SomeOwner, 1)
				one := visit(t, s, c.path, c.stream, c.command, 1)
				require.GreaterOrEqual(t, one, c.least)
				require.Equal(t, one, visit(t, s, c.path, c.stream, c.command, 20))
			})
		})
	}
}

func TestNothingSentWithoutViewers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "a", program.SomeOwner, 1)
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		time.Sleep(time.Minute)
		require.Zero(t, s.count("SCAN"))
		_, text := get(t, page, "/")
		require.Contains(t, text, `<bdi>a</bdi>`)
		time.Sleep(10 * time.Second) // the scans continue for a while, because pages without JavaScript are reloaded
		require.Greater(t, s.count("SCAN"), 3*50)
		time.Sleep(time.Hour)
		require.Zero(t, s.count("SCAN"))
	})
}

func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page := open(t, s, redlatchui.Options{})
		b := openTab(page, request(t.Context(), "192.0.2.1", "/events"))
		require.NoError(t, page.Close())
		<-b.over
		status, _ := get(t, page, "/")
		require.Equal(t, http.StatusServiceUnavailable, status)
	})
}

// A stalled server must not look like an idle server. Each page must say that it is stale, and its
// stream must make browsers reload it.
func TestStaleDataIsMarkedStale(t *testing.T) {
	t.Parallel()
	for path, stream := range map[string]string{
		"/": "/events", "/who": "/events", "/who?client=" + program.SomeOwner[:36]: "/events", "/lock?name=a": "/events?name=a",
		"/?only=numbers": "/events?about=numbers", "/server": "/events?about=server",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				s.Do(t, "HSET", "a", program.SomeOwner, 1)
				page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
				b := openTab(page, request(t.Context(), "192.0.2.1", stream))
				// until reloads the page at each event until it is marked stale, or no longer is.
				until := func(stale bool, limit time.Duration) {
					t.Helper()
					const old = "The data is stale: it was read at 20"
					began := time.Now()
					for ; ; <-b.events {
						if _, text := get(t, page, path); stale == strings.Contains(text, old) {
							return
						}
						require.Less(t, time.Since(began), limit)
					}
				}
				until(false, time.Second)
				time.Sleep(10 * time.Second)
				synctest.Wait() // a look that the stall makes slow would allow the next one more time
				for len(b.events) > 0 {
					<-b.events
				}
				s.stalls.Store(true)
				until(true, 30*time.Second)
				s.stalls.Store(false)
				until(false, 30*time.Second)
				require.NoError(t, page.Close())
			})
		})
	}
}

func TestStaleHolderIsNotShownAsAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		far := &server{MiniServer: s.MiniServer}
		page := open(t, far, redlatchui.Options{})
		hold, err := rlock.New(clientOf(t, s), "job").TryLock(t.Context(), rlock.WithWatchdog(15*time.Second))
		require.NoError(t, err)
		b := openTab(page, request(t.Context(), "192.0.2.1", "/events?name=job"))
		level := func() string {
			_, text := get(t, page, "/lock?name=job")
			return regexp.MustCompile(`<p class="why (\w+)"`).FindStringSubmatch(text)[1]
		}
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			<-b.events
		}
		require.Equal(t, "fine", level())
		far.stalls.Store(true)
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
			<-b.events
		}
		require.Equal(t, "calm", level())
		far.stalls.Store(false)
		require.NoError(t, hold.Unlock())
		require.NoError(t, page.Close())
	})
}

func TestIdleStreamSendsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page := open(t, s, redlatchui.Options{})
		b := openTab(page, request(t.Context(), "192.0.2.1", "/events?about=server"))
		began := time.Now()
		for range 3 {
			<-b.events
		}
		require.Equal(t, 9*time.Second, time.Since(began), "examinations are 15 s apart")
		require.NoError(t, page.Close())
	})
}
