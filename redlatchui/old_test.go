package redlatchui_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

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
