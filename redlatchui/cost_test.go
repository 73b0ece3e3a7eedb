package redlatchui_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/redlatchui"
)

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
	s, most := redistest.Start(t), time.Duration(testlevel.Rounds(300, 1000))*time.Millisecond
	page := open(t, s, redlatchui.Options{})
	s.Do(t, "CONFIG", "RESETSTAT")
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
	require.LessOrEqual(t, pings, int64(50), "one examination, or two when the test takes very long, and the client's own")
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
