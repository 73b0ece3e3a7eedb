package redlatchui_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// open returns a page for the locks of a server.
func open(t *testing.T, s *redistest.Server, o redlatchui.Options) *redlatchui.Page {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	page, err := redlatchui.New(client, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, page.Close())
		require.NoError(t, client.Close())
	})
	return page
}

// answer is what a page answers to a request.
func answer(page http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w.Result()
}

// get returns the status and the text of an answer to a browser on this machine.
func get(t *testing.T, page http.Handler, address string) (status int, text string) {
	t.Helper()
	got := answer(page, httptest.NewRequest(http.MethodGet, "http://localhost"+address, nil))
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(body)
}

func TestOnlyThePageItselfIsAnswered(t *testing.T) {
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
		r := httptest.NewRequest(c.method, c.url, nil)
		for h := range strings.SplitSeq(c.headers, ", ") {
			if name, value, is := strings.Cut(h, ": "); is {
				r.Header.Set(name, value)
			}
		}
		got := answer(page, r)
		require.Equal(t, c.status, got.StatusCode, what)
		if c.status == 404 {
			require.Equal(t, "text/plain; charset=utf-8", got.Header.Get("Content-Type"), what)
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

func TestFormsOfOtherSitesDoNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
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
}
