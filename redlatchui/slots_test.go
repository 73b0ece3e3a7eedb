package redlatchui_test

import (
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
