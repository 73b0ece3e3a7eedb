package redlatchui_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

func answer(page http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w.Result()
}

func load(t *testing.T, page http.Handler, r *http.Request) (status int, text string) {
	t.Helper()
	got := answer(page, r)
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(body)
}

func get(t *testing.T, page http.Handler, address string) (status int, text string) {
	t.Helper()
	return load(t, page, httptest.NewRequest(http.MethodGet, "http://localhost"+address, nil))
}

func TestOnlyOwnPathsAreServed(t *testing.T) {
	t.Parallel()
	page := open(t, redistest.Start(t), redlatchui.Options{Hosts: []string{"Locks.example.com"}})
	for what, c := range map[string]struct {
		method, url string
		headers     string
		status      int
	}{
		"localhost":                 {"GET", "http://localhost:8374/", "", 200},
		"another port":              {"GET", "http://127.0.0.1:1/", "", 200},
		"IPv6":                      {"GET", "http://[::1]:8374/", "", 200},
		"a host of the list":        {"GET", "http://LOCKS.example.com/", "", 200},
		"rebinding":                 {"GET", "http://evil.example:8374/", "", 421},
		"rebinding, stream":         {"GET", "http://evil.example/events", "", 421},
		"rebinding, style":          {"GET", "http://evil.example/static/page.css", "", 421},
		"a name that begins alike":  {"GET", "http://localhost.evil.example/", "", 421},
		"a name that ends alike":    {"GET", "http://evil-locks.example.com/", "", 421},
		"an address of the network": {"GET", "http://10.0.0.7:8374/", "", 421},
		"a link on another site":    {"GET", "http://localhost/", "Sec-Fetch-Site: cross-site, Sec-Fetch-Mode: navigate, Sec-Fetch-Dest: document", 200},
		"a frame on another site":   {"GET", "http://localhost/", "Sec-Fetch-Site: cross-site, Sec-Fetch-Mode: navigate, Sec-Fetch-Dest: iframe", 403},
		"a stream of another site":  {"GET", "http://localhost/events", "Sec-Fetch-Site: cross-site, Sec-Fetch-Mode: cors, Sec-Fetch-Dest: empty", 403},
		"a stream of another port":  {"GET", "http://localhost/events", "Sec-Fetch-Site: same-site, Sec-Fetch-Mode: cors, Sec-Fetch-Dest: empty", 403},
		"a picture on another site": {"GET", "http://localhost/static/icon.svg", "Sec-Fetch-Site: cross-site, Sec-Fetch-Mode: no-cors, Sec-Fetch-Dest: image", 403},
		"the page's own":            {"GET", "http://localhost/", "Sec-Fetch-Site: same-origin, Sec-Fetch-Mode: cors, Sec-Fetch-Dest: empty", 200},
		"typed":                     {"GET", "http://localhost/", "Sec-Fetch-Site: none, Sec-Fetch-Mode: navigate, Sec-Fetch-Dest: document", 200},
		"a form of another site":    {"POST", "http://localhost/", "Origin: http://evil.example", 403},
		"a form":                    {"POST", "http://localhost/", "", 405},
		"deletion":                  {"DELETE", "http://localhost/lock?name=a", "", 405},
		"nothing there":             {"GET", "http://localhost/etc/passwd", "", 404},
		"below a page":              {"GET", "http://localhost/lock/job/", "", 404},
		"the list of files":         {"GET", "http://localhost/static/", "", 404},
		"the folder of files":       {"GET", "http://localhost/static", "", 404},
		"a file that is not served": {"GET", "http://localhost/static/../vendored.txt", "", 307},
		"the same, escaped":         {"GET", "http://localhost/static/..%2Fvendored.txt", "", 404},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a stream is endless
		r := httptest.NewRequestWithContext(ctx, c.method, c.url, nil)
		for h := range strings.SplitSeq(c.headers, ", ") {
			if name, value, is := strings.Cut(h, ": "); is {
				r.Header.Set(name, value)
			}
		}
		got := answer(page, r)
		cancel()
		require.Equal(t, c.status, got.StatusCode, what)
		if c.status == 404 || c.status == 421 {
			body, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.Equal(t, "text/html; charset=utf-8", got.Header.Get("Content-Type"), what)
			require.Regexp(t, `<html lang="en">[^|]*<title>(Not Found|Misdirected Request) · Redlatch</title>`, string(body), what)
			require.NotRegexp(t, "href|src", string(body), "they would lead elsewhere: %s", what)
		}
		require.Equal(t, "no-store", got.Header.Get("Cache-Control"), what)
		require.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"), what)
		require.Equal(t, "DENY", got.Header.Get("X-Frame-Options"), what)
		require.Empty(t, got.Header.Get("Access-Control-Allow-Origin"), what)
		policy := got.Header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'", what)
		require.NotContains(t, policy, "unsafe", what)
	}
}

func TestCrossSiteFormsAreRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		s.Do(t, "HSET", "job", program.SomeOwner, 1)
		program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
		for what, c := range map[string]struct {
			headers map[string]string
			host    string
			status  int
		}{
			"another site":               {map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, "localhost", 403},
			"another port":               {map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, "localhost", 403},
			"its script":                 {map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}, "localhost", 403},
			"an old browser":             {map[string]string{"Origin": "http://evil.example"}, "localhost", 403},
			"an old browser, port":       {map[string]string{"Origin": "http://localhost:1"}, "localhost:8374", 403},
			"an old browser, no origin":  {map[string]string{"Origin": "null"}, "localhost", 403},
			"rebinding":                  {map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, "evil.example", 421},
			"rebinding, an old browser":  {map[string]string{"Origin": "http://evil.example:8374"}, "evil.example:8374", 421},
			"rebinding, without headers": {nil, "evil.example", 421},
		} {
			for path, form := range map[string]url.Values{"/unlock?name=job": takes(program.SomeOwner), "/evict?name=job": evicts(program.RedissonOwner)} {
				r := postRequest(path, form)
				r.Host = c.host
				for name, value := range c.headers {
					r.Header.Set(name, value)
				}
				require.Equal(t, c.status, answer(page, r).StatusCode, what+path)
			}
		}
		require.Empty(t, told.take())
		require.True(t, program.Exists(t, s, "job"))
		require.Len(t, program.QueueOf(t, s, "job"), 1)
		r := postRequest("/unlock?name=job", takes(program.SomeOwner))
		r.Host = "localhost:8374"
		r.Header.Set("Origin", "http://localhost:8374")
		require.Equal(t, 200, answer(page, r).StatusCode, "while the page's own is done")
		require.False(t, program.Exists(t, s, "job"))
	})
}

// proxyOf serves a page behind a proxy as docs/ui.md describes. The proxy uses TLS, strips a path
// and, if keepsHost is set, passes on the host that the browser sent.
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

// ask sends a request like a browser that uses the name of the proxy.
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

func TestPageWorksBehindProxy(t *testing.T) {
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
	for range 2 { // it arrives change by change, not only when it ends
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
	own := map[string]string{"Origin": "https://locks.example.com", "X-Forwarded-User": "ops"}
	got = ask(t, proxyOf(t, page, false), http.MethodPost, "unlock?name=job", form, own)
	require.Equal(t, 403, got.StatusCode, "the proxy drops the host")
	require.True(t, program.Exists(t, s, "job"))
	got = ask(t, front, http.MethodPost, "unlock?name=job", form, own)
	require.Equal(t, 200, got.StatusCode)
	require.False(t, program.Exists(t, s, "job"))
}

func TestThirdPartyFilesAreServedUnmodified(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join("page", "vendored.txt"))
	require.NoError(t, err)
	page := open(t, redistest.Shared(t), redlatchui.Options{})
	listed := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line) // package, version, its file, licence, checksum, file
		require.Len(t, fields, 6, line)
		status, text := get(t, page, "/"+fields[5])
		require.Equal(t, 200, status, line)
		sum := sha256.Sum256([]byte(text))
		require.Equal(t, fields[4], hex.EncodeToString(sum[:]), line)
		listed[filepath.Base(fields[5])] = true
	}
	require.True(t, listed["idiomorph.js"] && listed["idiomorph.LICENSE.txt"], "%v", listed)
}

var rowID = regexp.MustCompile(`<(?:tr|li) id="([^"]*)"`)

func TestRowsHaveUniqueIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "job", program.SomeOwner, 1)
		for _, owner := range []string{"a\x1b", "a\x1c", "a\x1b", `"><i id="x">`, program.RedissonOwner} {
			program.Enqueue(t, s, "job", owner, time.Hour)
		}
		s.Do(t, "HSET", "books", "mode", "read", javaA+":1", 1, javaA+":2", 1)
		for i := range 3 {
			s.Do(t, "HSET", fmt.Sprintf("orders:%d", i), javaA+":1", 1)
		}
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		says(t, page, "/", "5 locks")
		for address, rows := range map[string]int{
			"/": 5 + 1, "/?by=prefix": 2, "/lock?name=job": 5 + 1 + 1, "/lock?name=books": 2 + 2, "/who": 5, "/who?client=" + javaA: 5 + 1,
		} {
			_, text := get(t, page, address)
			seen := map[string]bool{}
			for _, id := range rowID.FindAllStringSubmatch(text, -1) {
				require.Regexp(t, `^k[0-9a-f]{32}(-\d+)?$`, id[1], address)
				require.False(t, seen[id[1]], "%s: %s", address, text)
				seen[id[1]] = true
			}
			require.Len(t, seen, rows, "%s: %s", address, textOf(text))
		}
	})
}

func TestHEADOfStreamReturnsImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page := open(t, s, redlatchui.Options{})
		for _, path := range []string{"/events", "/events?name=a", "/events?about=server"} {
			began := time.Now()
			got := answer(page, httptest.NewRequest(http.MethodHead, "http://localhost"+path, nil))
			require.Zero(t, time.Since(began))
			require.Equal(t, 200, got.StatusCode)
			require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
		}
		require.Zero(t, s.count("SCAN"))
	})
}
