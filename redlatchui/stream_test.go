package redlatchui_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// tab is a stream that a browser has open.
type tab struct {
	header http.Header
	once   sync.Once
	begun  chan struct{} // closed with the first event
	over   chan struct{} // closed when the stream is over

	mu   sync.Mutex
	text strings.Builder
}

func (b *tab) Header() http.Header { return b.header }
func (b *tab) WriteHeader(int)     {}
func (b *tab) Flush()              {}

func (b *tab) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.begun) })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *tab) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// requestFrom is a request for a page of a lock, or its stream, from an address.
func requestFrom(ctx context.Context, address, what, name string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/"+what+"?name="+name, nil)
	r.RemoteAddr = address + ":4711"
	return r
}

// tabsFrom opens streams of 64 locks, each from an address.
func tabsFrom(ctx context.Context, t *testing.T, page *redlatchui.Page, names string, address func(i int) string) (all []*tab) {
	t.Helper()
	for i := range 64 {
		b := &tab{header: http.Header{}, begun: make(chan struct{}), over: make(chan struct{})}
		all = append(all, b)
		go func() {
			defer close(b.over)
			page.ServeHTTP(b, requestFrom(ctx, address(i), "events", fmt.Sprint(names, i)))
		}()
	}
	for _, b := range all {
		<-b.begun
	}
	return all
}

// openTabs counts the streams that are open.
func openTabs(all []*tab) (n int) {
	for _, b := range all {
		select {
		case <-b.over:
		default:
			n++
		}
	}
	return n
}

const notLive = "so this one is not kept up to date"

func TestOneViewerCannotKeepThePagesOfLocksFromOthers(t *testing.T) {
	t.Parallel()
	const other = "198.51.100.2"
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
			s := redistest.Start(t)
			for i := range 80 {
				s.Do(t, "HSET", fmt.Sprint("held:", i), program.SomeOwner, 1)
			}
			s.Do(t, "HSET", "mine", program.SomeOwner, 1)
			page := open(t, s, redlatchui.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			tabs := tabsFrom(ctx, t, page, c.names, c.viewer)
			defer func() {
				cancel()
				for _, b := range tabs {
					<-b.over
				}
			}()
			require.Equal(t, 64, openTabs(tabs))
			// The viewer gets one more, and if it is of a lock, without a stream.
			got := recorded(page, requestFrom(ctx, c.viewer(70), "lock", "held:70"))
			require.Equal(t, http.StatusOK, got.Code)
			require.Contains(t, got.Body.String(), "Held by")
			require.Equal(t, c.names == "held:", strings.Contains(got.Body.String(), notLive))
			require.Equal(t, c.names == "held:", !strings.Contains(got.Body.String(), "data-stream"))
			// Another gets it with a stream, which stays.
			got = recorded(page, requestFrom(ctx, other, "lock", "mine"))
			require.Equal(t, http.StatusOK, got.Code)
			require.Contains(t, got.Body.String(), `data-stream="events?name=mine"`)
			require.NotContains(t, got.Body.String(), notLive)
			var lost *tab
			require.Eventually(t, func() bool { return openTabs(tabs) < 64 }, 10*time.Second, 10*time.Millisecond)
			for _, b := range tabs {
				if openTabs([]*tab{b}) == 0 {
					lost = b
				}
			}
			require.True(t, strings.HasSuffix(lost.said(), "data: last\n\n"), "its page is loaded once more: %s", lost.said())
		})
	}
}

// recorded returns the answer to a request.
func recorded(page *redlatchui.Page, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

// follow opens a stream as a tab does, loads the page at each change, and reports after so many
// changes.
func follow(ctx context.Context, t *testing.T, base, page, stream string, changes int, done *sync.WaitGroup) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+stream, nil)
	require.NoError(t, err)
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = got.Body.Close() })
	require.Equal(t, 200, got.StatusCode)
	require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
	done.Go(func() {
		lines := bufio.NewScanner(got.Body)
		for n := 0; n < changes && lines.Scan(); {
			if !strings.HasPrefix(lines.Text(), "data:") {
				continue
			}
			n++
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+page, nil)
			if err != nil {
				return
			}
			if loaded, err := http.DefaultClient.Do(r); err == nil {
				_ = loaded.Body.Close()
			}
		}
	})
}

// commands returns how many commands of each kind the server gets for each scan or look, while
// so many tabs follow it for some changes, and how long that took.
func commands(t *testing.T, s *redistest.Server, page, stream string, tabs int) (all map[string]int64, took time.Duration) {
	t.Helper()
	handler := open(t, s, redlatchui.Options{Every: 300 * time.Millisecond})
	web := httptest.NewServer(handler)
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Do(t, "CONFIG", "RESETSTAT")
	began := time.Now()
	var done sync.WaitGroup
	for range tabs {
		follow(ctx, t, web.URL, page, stream, 4, &done)
	}
	done.Wait()
	all = s.CommandStats(t)
	return all, time.Since(began)
}

// It is not parallel: it counts.
func TestTwentyTabsCostTheServerWhatOneCosts(t *testing.T) {
	for what, c := range map[string]struct {
		page, stream string
		// each is a command of each scan or look, of which there are so many.
		each string
		of   int64
	}{
		"all locks": {"/", "/events", "scan", 3},
		"numbers":   {"/?only=numbers", "/events?about=numbers", "scan", 1},
		"clients":   {"/who", "/events", "scan", 3},
		"one lock":  {"/lock?name=a", "/events?name=a", "hscan", 1},
	} {
		t.Run(what, func(t *testing.T) {
			s := redistest.Start(t)
			s.Do(t, "HSET", "a", program.SomeOwner, 1)
			one, _ := commands(t, s, c.page, c.stream, 1)
			twenty, took := commands(t, s, c.page, c.stream, 20)
			t.Logf("%s: one tab %d, twenty tabs %d in %v", c.each, one[c.each], twenty[c.each], took)
			require.GreaterOrEqual(t, one[c.each], 4*c.of)
			// One every 300 ms until the last tab has loaded, and some while the tabs open.
			require.LessOrEqual(t, twenty[c.each], c.of*(int64(took/(250*time.Millisecond))+8))
		})
	}
}

// It is not parallel: it counts.
func TestTwentyTabsOfTheServersPageAreOneExamination(t *testing.T) {
	s, most := redistest.Start(t), 1200*time.Millisecond
	page := open(t, s, redlatchui.Options{})
	s.Do(t, "CONFIG", "RESETSTAT")
	began := time.Now()
	var done sync.WaitGroup
	for range 20 {
		done.Go(func() {
			for began := time.Now(); time.Since(began) < most; {
				answer(page, httptest.NewRequest(http.MethodGet, "http://localhost/server", nil))
			}
		})
	}
	done.Wait()
	pings := s.CommandStats(t)["ping"]
	t.Logf("%d times PING", pings)
	require.GreaterOrEqual(t, pings, int64(20))
	require.LessOrEqual(t, pings, 30+20*int64(time.Since(began)/(15*time.Second)), "one examination, more when the test takes very long, and the client's own")
}

func TestWithoutViewersNothingIsSent(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "a", program.SomeOwner, 1)
	page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
	before := s.CommandStats(t)["scan"]
	require.Zero(t, before)
	_, text := get(t, page, "/")
	require.Contains(t, text, `<bdi>a</bdi>`)
	// A page without JavaScript is loaded again: the scans go on for a while, and end.
	last, since := int64(-1), time.Now()
	require.Eventually(t, func() bool {
		if n := s.CommandStats(t)["scan"]; n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	}, time.Minute, 100*time.Millisecond)
	require.Positive(t, last)
}

func TestClosingThePageEndsItsStreams(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page := open(t, s, redlatchui.Options{})
	web := httptest.NewServer(page)
	defer web.Close()
	var done sync.WaitGroup
	follow(t.Context(), t, web.URL, "/", "/events", 1_000_000, &done)
	require.NoError(t, page.Close())
	done.Wait()
	status, _ := get(t, page, "/")
	require.Equal(t, http.StatusServiceUnavailable, status)
}

// A server that does not answer must not look as one on which nothing happens: each page says that
// it is old, and its stream makes a browser load it again to say so.
func TestWhatIsOldIsSaidToBeOld(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "a", program.SomeOwner, 1)
	page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
	web := httptest.NewServer(page)
	defer web.Close()
	streams := map[string]string{
		"/": "/events", "/who": "/events", "/who?client=" + program.SomeOwner[:36]: "/events", "/lock?name=a": "/events?name=a",
		"/?only=numbers": "/events?about=numbers", "/server": "/events?about=server",
	}
	const old = "What is shown is old: it was seen at 20"
	lines := map[string]*bufio.Scanner{}
	for address, stream := range streams {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+stream, nil)
		require.NoError(t, err)
		got, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = got.Body.Close() }()
		lines[address] = bufio.NewScanner(got.Body)
		_, text := get(t, page, address)
		require.NotContains(t, text, old)
	}
	s.Pause()
	defer s.Resume()
	began := time.Now()
	for address := range streams {
		for said := false; !said; {
			require.True(t, lines[address].Scan(), address)
			if strings.HasPrefix(lines[address].Text(), "data:") {
				_, text := get(t, page, address)
				said = strings.Contains(text, old)
			}
			require.Less(t, time.Since(began), 45*time.Second, address)
		}
	}
	s.Resume()
	for address := range streams {
		require.Eventually(t, func() bool {
			_, text := get(t, page, address)
			return !strings.Contains(text, old)
		}, time.Minute, 100*time.Millisecond, address)
	}
}

// A stream has an event every few seconds also when nothing has changed: an examination of the server
// is made every 15 s.
func TestStreamReportsThatNothingHasChanged(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(open(t, redistest.Shared(t), redlatchui.Options{}))
	defer web.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/events?about=server", nil)
	require.NoError(t, err)
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	lines := bufio.NewScanner(got.Body)
	began := time.Now()
	for events := 0; events < 3; {
		require.True(t, lines.Scan())
		if strings.HasPrefix(lines.Text(), "data:") {
			events++
		}
	}
	require.Less(t, time.Since(began), 12*time.Second)
}
