package redlatchui_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// proxyOf serves a page as docs/ui.md has it behind a proxy: with TLS, below a path that the proxy
// takes off, and, if the proxy keeps it, with the host that the browser names.
func proxyOf(t *testing.T, page http.Handler, keepsHost bool) *httptest.Server {
	t.Helper()
	behind := httptest.NewServer(page)
	to, err := url.Parse(behind.URL)
	require.NoError(t, err)
	front := httptest.NewTLSServer(http.StripPrefix("/locks", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if r.SetURL(to); keepsHost {
			r.Out.Host = r.In.Host
		}
	}}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		behind.CloseClientConnections()
		behind.Close()
	})
	return front
}

// ask sends a request as a browser does that knows the proxy by a name.
func ask(t *testing.T, front *httptest.Server, method, path string, form url.Values, headers map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, front.URL+"/locks/"+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Host = "locks.example.com"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	got, err := front.Client().Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = got.Body.Close() })
	return got
}

func TestThePageWorksBehindAProxy(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	page := open(t, s, redlatchui.Options{
		Hosts: []string{"locks.example.com"}, Access: func(r *http.Request) redlatchui.Access {
			if r.Header.Get("X-Forwarded-User") == "ops" {
				return redlatchui.FullAccess
			}
			return redlatchui.ReadOnly
		},
	})
	front := proxyOf(t, page, true)
	t.Cleanup(func() { _ = page.Close() }) // its streams, before the proxy
	got := ask(t, front, http.MethodGet, "lock?name=job", nil, nil)
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Equal(t, 200, got.StatusCode)
	require.Contains(t, string(text), program.SomeOwner)
	require.Contains(t, string(text), `<link rel="stylesheet" href="static/page.css">`, "a link that stays below the path")
	require.NotRegexp(t, `(href|src|action)="/`, string(text))

	stream := ask(t, front, http.MethodGet, "events?name=job", nil, nil)
	require.Equal(t, "no", stream.Header.Get("X-Accel-Buffering"))
	lines := bufio.NewScanner(stream.Body)
	for range 2 { // it arrives change by change, not when it ends
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
			continue
		}
		require.NoError(t, lines.Err())
		s.Do(t, "HINCRBY", "job", program.SomeOwner, 1)
	}

	form := takes(program.SomeOwner)
	for what, c := range map[string]struct {
		headers map[string]string
		status  int
	}{
		"a viewer":             {map[string]string{"Origin": "https://locks.example.com"}, 403},
		"another site":         {map[string]string{"Origin": "https://evil.example", "X-Forwarded-User": "ops"}, 403},
		"another site, newer":  {map[string]string{"Sec-Fetch-Site": "cross-site", "X-Forwarded-User": "ops"}, 403},
		"another host's pages": {map[string]string{"Origin": "https://www.example.com", "X-Forwarded-User": "ops"}, 403},
	} {
		require.Equal(t, c.status, ask(t, front, http.MethodPost, "unlock?name=job", form, c.headers).StatusCode, what)
		require.True(t, program.Exists(t, s, "job"), what)
	}
	got = ask(t, front, http.MethodPost, "unlock?name=job", form, map[string]string{"Origin": "https://locks.example.com", "X-Forwarded-User": "ops"})
	require.Equal(t, 200, got.StatusCode)
	require.False(t, program.Exists(t, s, "job"))
}

// Without the host that the browser names, the origin of a form cannot be compared with it.
func TestBehindAProxyThatDropsTheHostFormsAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	page := open(t, s, redlatchui.Options{Hosts: []string{"locks.example.com"}, Access: always(redlatchui.FullAccess)})
	front := proxyOf(t, page, false)
	got := ask(t, front, http.MethodPost, "unlock?name=job", takes(program.SomeOwner), map[string]string{"Origin": "https://locks.example.com"})
	require.Equal(t, 403, got.StatusCode)
	require.True(t, program.Exists(t, s, "job"))
}
