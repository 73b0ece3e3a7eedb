package ui

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/redlatchui"
)

// gateOf returns a gate with the users ops and night, and its log.
func gateOf() (http.Handler, *bytes.Buffer) {
	said := &bytes.Buffer{}
	users := credentials{
		{sha256.Sum256([]byte("ops")), sha256.Sum256([]byte("s3cret"))},
		{sha256.Sum256([]byte("night")), sha256.Sum256([]byte("0ther"))},
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) })
	return users.protect(page, said), said
}

func knock(g http.Handler, from, user, password string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r.RemoteAddr = from
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Result()
}

func TestRepeatedWrongPasswordsBlockAddressTemporarily(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, said := gateOf()
		const from, other = "192.0.2.1:1234", "192.0.2.2:1234"
		for range 50 {
			require.Equal(t, 401, knock(g, from, "", "").StatusCode, "a browser that asks for the first time guesses nothing")
		}
		require.Empty(t, said.String())
		for n := range 10 {
			require.Equal(t, 200, knock(g, from, "ops", "s3cret").StatusCode, n)
			require.Equal(t, 401, knock(g, from, "ops", fmt.Sprint(n)).StatusCode)
		}
		for _, port := range []string{":1234", ":99"} {
			got := knock(g, "192.0.2.1"+port, "ops", "s3cret")
			require.Equal(t, 429, got.StatusCode, "the right one, too: else it would be guessed")
			require.Equal(t, "31", got.Header.Get("Retry-After"))
			require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
		}
		require.Equal(t, 200, knock(g, other, "ops", "s3cret").StatusCode, "another address does not wait")
		time.Sleep(31 * time.Second)
		require.Equal(t, 200, knock(g, from, "ops", "s3cret").StatusCode)
		require.Equal(t, 401, knock(g, from, "ops", "wrong").StatusCode)
		require.Equal(t, 429, knock(g, from, "ops", "wrong").StatusCode, "one more, no ten")
		time.Sleep(10 * time.Minute)
		for range 10 {
			require.Equal(t, 401, knock(g, from, "ops", "wrong").StatusCode, "it is forgotten")
		}
		require.Equal(t, 429, knock(g, from, "ops", "wrong").StatusCode)
	})
}

func TestKnownBrowserNotBlockedByItsProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := gateOf()
		const proxy = "127.0.0.1:1234"
		got := knock(g, proxy, "ops", "s3cret")
		require.Len(t, got.Cookies(), 1)
		cookie := got.Cookies()[0]
		require.True(t, cookie.HttpOnly)
		require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
		for range 20 {
			require.Empty(t, knock(g, proxy, "ops", "guess").Cookies())
		}
		require.Equal(t, 429, knock(g, proxy, "ops", "s3cret").StatusCode)
		known := func(user, password string, c *http.Cookie) int {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
			r.RemoteAddr = proxy
			r.SetBasicAuth(user, password)
			r.AddCookie(c)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w.Code
		}
		require.Equal(t, 200, known("ops", "s3cret", cookie))
		require.Equal(t, 429, known("night", "0ther", cookie), "it is that of another user")
		require.Equal(t, 429, known("ops", "s3cret", &http.Cookie{Name: cookie.Name, Value: "forged"}))
		another, _ := gateOf()
		require.NotEqual(t, cookie.Value, knock(another, proxy, "ops", "s3cret").Cookies()[0].Value)
		for range 10 {
			require.Equal(t, 401, known("ops", "guess", cookie))
		}
		require.Equal(t, 429, known("ops", "guess", cookie))
		require.Equal(t, 429, known("ops", "s3cret", cookie))
	})
}

func TestWrongPasswordLogIsRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, said := gateOf()
		knock(g, "192.0.2.1:1", "ops", "s3cret")
		require.Empty(t, said.String())
		knock(g, "192.0.2.1:1", "ops", "hunter2")
		knock(g, "192.0.2.1:2", "hunter2\n\x1b", "")
		at := time.Now().UTC().Format(time.RFC3339)
		require.Equal(t, "redlatch: login: "+at+" from 192.0.2.1:1: wrong password of ops\nredlatch: login: "+at+" from 192.0.2.1:2: unknown user\n", said.String())
		require.NotContains(t, said.String(), "hunter2", "a password is not written down, also in the place of a user")

		for range 1000 {
			knock(g, "192.0.2.1:3", "ops", "x")
		}
		require.Equal(t, 11, strings.Count(said.String(), "\n"))
		require.True(t, strings.HasSuffix(said.String(), "from 192.0.2.1:3: too many wrong passwords: temporarily blocked\n"), said)
		time.Sleep(30 * time.Second)
		knock(g, "192.0.2.1:4", "ops", "x")
		require.True(t, strings.HasSuffix(said.String(), "from 192.0.2.1:4: wrong password of ops, after 992 rejected requests\n"), said)

		said.Reset()
		time.Sleep(time.Minute)
		for i := range 1000 { // many addresses
			knock(g, fmt.Sprintf("198.51.%d.%d:1", i/250, i%250), "ops", "x")
		}
		require.Equal(t, 100, strings.Count(said.String(), "\n"))
		time.Sleep(time.Second)
		knock(g, "192.0.2.9:1", "ops", "x")
		require.True(t, strings.HasSuffix(said.String(), "; 900 earlier lines omitted\n"), said)
	})
}

func TestConcurrentGuessesAreCounted(t *testing.T) {
	t.Parallel()
	g, _ := gateOf()
	g.(*gate).errors = io.Discard
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range 100 {
		all.Go(func() {
			status := knock(g, "[2001:db8::1]:1", "unknown", "x").StatusCode
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	all.Wait()
	require.Equal(t, map[int]int{401: 10, 429: 90}, answers)
}

func TestIPv6PrefixCountsAsOneAddress(t *testing.T) {
	t.Parallel()
	g, _ := gateOf()
	for i := range 10 {
		require.Equal(t, 401, knock(g, fmt.Sprintf("[2001:db8::%d]:1", i), "ops", "x").StatusCode)
	}
	require.Equal(t, 429, knock(g, "[2001:db8::ffff:1]:1", "ops", "x").StatusCode)
	require.Equal(t, 401, knock(g, "[2001:db8:0:1::1]:1", "ops", "x").StatusCode)
	require.Equal(t, sourceOf("192.0.2.1:1"), sourceOf("[::ffff:192.0.2.1]:2"))
}

func TestNewAddressReplacesFewestGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := gateOf()
		guesses := func(network, addresses int) (from []string) {
			for i := range addresses {
				address := fmt.Sprintf("10.%d.%d.%d:1", network, i/250, i%250)
				knock(g, address, "ops", "x")
				from = append(from, sourceOf(address))
			}
			return from
		}
		for range 11 {
			knock(g, "192.0.2.1:1", "ops", "x")
		}
		early := guesses(1, 3)
		time.Sleep(time.Second)
		rest := guesses(2, guessers-1-len(early))
		rest = append(rest, guesses(3, len(early))...)
		counted := g.(*gate).guesses.of
		require.Len(t, counted, guessers)
		for _, from := range rest {
			require.NotNil(t, counted[from], from)
		}
		require.Equal(t, 429, knock(g, "192.0.2.1:1", "ops", "s3cret").StatusCode)
	})
}

func TestAuditRecordsOutcomeTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := &bytes.Buffer{}
		s, began := &server{errors: said}, time.Now().UTC()
		require.NoError(t, s.audit(t.Context(), redlatchui.Attempt{User: "ops", Outcome: "begun"}))
		time.Sleep(4 * time.Second)
		require.NoError(t, s.audit(t.Context(), redlatchui.Attempt{User: "ops", Outcome: "done"}))
		lines := strings.Split(said.String(), "\n")
		require.Contains(t, lines[0], began.Format(time.RFC3339)+" ops")
		require.Contains(t, lines[0], `of lock ""; reason`, "there are no owners")
		require.Contains(t, lines[1], began.Add(4*time.Second).Format(time.RFC3339)+" ops")
	})
}
