package redlatchui_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

type audits struct {
	mu  sync.Mutex
	all []redlatchui.Attempt
}

func (a *audits) add(_ context.Context, what redlatchui.Attempt) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, what)
	return nil
}

// take returns the attempts since the last call.
func (a *audits) take() []redlatchui.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

func (a *audits) outcomes() (all []string) {
	for _, what := range a.take() {
		all = append(all, what.Outcome)
	}
	return all
}

func always(a redlatchui.Access) func(*http.Request) redlatchui.Access {
	return func(*http.Request) redlatchui.Access { return a }
}

func acting(t *testing.T, s redistest.Target) (*redlatchui.Page, *audits) {
	t.Helper()
	told := &audits{}
	return open(t, s, redlatchui.Options{
		Access: always(redlatchui.FullAccess), User: func(*http.Request) string { return "ops" }, Audit: told.add,
	}), told
}

func postRequest(address string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+address, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func post(t *testing.T, page http.Handler, address string, form url.Values) (status int, text string) {
	t.Helper()
	status, text = load(t, page, postRequest(address, form))
	return status, html.UnescapeString(text)
}

func takes(owners ...string) url.Values {
	return url.Values{"holder": owners, "dead": owners, "reason": {"host is gone"}}
}

func evicts(owner string) url.Values {
	return url.Values{"owner": {base64.RawURLEncoding.EncodeToString([]byte(owner))}, "reason": {"pod was deleted"}}
}

// deadWaiter returns the page of a lock whose first waiter is dead.
func deadWaiter(t *testing.T, page http.Handler, name string) (text string) {
	t.Helper()
	_, text = get(t, page, "/lock?name="+name)
	require.Contains(t, text, `class="badge dead"`)
	return text
}

func TestViewerWithoutRightSeesNoFormAndIsRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
		for what, c := range map[string]struct {
			access             func(*http.Request) redlatchui.Access
			sees, unlock, pick bool
		}{
			"no rule":   {nil, true, false, false},
			"none":      {always(redlatchui.NoAccess), false, false, false},
			"read-only": {always(redlatchui.ReadOnly), true, false, false},
			"unlock":    {always(redlatchui.MayUnlock), true, true, false},
			"evict":     {always(redlatchui.MayEvict), true, false, true},
			"both":      {always(redlatchui.MayUnlock | redlatchui.MayEvict), true, true, true},
			"all":       {always(redlatchui.FullAccess), true, true, true},
		} {
			s.Do(t, "HSET", "job", program.SomeOwner, 1)
			told := &audits{}
			page := open(t, s, redlatchui.Options{Access: c.access, Audit: told.add})
			status := func(is bool) int { return map[bool]int{true: 200, false: 403}[is] }
			for _, path := range []string{"/", "/lock?name=job"} {
				got, text := get(t, page, path)
				require.Equal(t, status(c.sees), got, what+path)
				require.Equal(t, c.sees, strings.Contains(text, "00000001:7"), what)
			}
			if c.sees {
				text := deadWaiter(t, page, "job")
				require.Equal(t, c.unlock, strings.Contains(text, "Force unlock"), what)
				require.Equal(t, c.pick, strings.Contains(text, "Evict"), what)
				require.Equal(t, !c.unlock && !c.pick && c.access == nil, strings.Contains(text, "read-only"), what)
			} else {
				got := answer(page, httptest.NewRequest(http.MethodGet, "http://localhost/events", nil))
				require.Equal(t, 403, got.StatusCode, what)
			}
			for path, may := range map[string]bool{
				"/unlock?name=job": c.unlock, "/evict?name=job&owner=YQ": c.pick, "/evict-all-dead?name=job": c.pick,
			} {
				got, text := get(t, page, path)
				require.Equal(t, status(may), got, what+path)
				require.Equal(t, may, got == 200 && !strings.Contains(text, "not allowed"), what)
			}
			require.Empty(t, told.take(), "looking is no action")
			if !c.unlock {
				got, _ := post(t, page, "/unlock?name=job", takes(program.SomeOwner))
				require.Equal(t, 403, got, what)
				all := told.take()
				require.Len(t, all, 1, what)
				require.Equal(t, "denied", all[0].Outcome)
				require.Equal(t, "job", all[0].Lock)
				require.Equal(t, []string{program.SomeOwner}, all[0].Owners)
			}
			if !c.pick {
				got, _ := post(t, page, "/evict?name=job", evicts(program.RedissonOwner))
				require.Equal(t, 403, got, what)
				require.Equal(t, []string{"denied"}, told.outcomes(), what)
				got, _ = post(t, page, "/evict-all-dead?name=job", evicts(""))
				require.Equal(t, 403, got, what)
				require.Equal(t, []string{"denied"}, told.outcomes(), what)
			}
			require.True(t, program.Exists(t, s, "job"), what)
			require.Len(t, program.QueueOf(t, s, "job"), 1, what)
		}
	})
}

// oneForm follows the link on a lock's page that releases the lock for one owner, and submits the
// form.
func oneForm(t *testing.T, page *redlatchui.Page, told *audits, name, owner, says string) {
	t.Helper()
	link := "unlock?name=" + name + "&owner=" + base64.RawURLEncoding.EncodeToString([]byte(owner))
	_, text := get(t, page, "/lock?name="+name)
	require.Contains(t, html.UnescapeString(text), `href="`+link+`"`)
	status, text := get(t, page, "/"+link)
	require.Equal(t, 200, status)
	address, form := formOf(t, text)
	require.Equal(t, []string{owner}, form["holder"])
	status, text = post(t, page, address, form)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, says)
	all := told.take()
	require.Len(t, all, 2)
	require.Equal(t, []string{owner}, all[1].Owners)
	require.Equal(t, "done", all[1].Outcome)
}

func TestFormReleasesOneReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		s.Do(t, "HSET", "books", "mode", "read", program.SomeOwner, 1, program.RedissonOwner, 1)
		s.Do(t, "PEXPIRE", "books", time.Hour.Milliseconds())
		s.Do(t, "SET", "{books}:"+program.SomeOwner+":rwlock_timeout:1", 1, "PX", time.Hour.Milliseconds())
		s.Do(t, "SET", "{books}:"+program.RedissonOwner+":rwlock_timeout:1", 1)
		oneForm(t, page, told, "books", program.RedissonOwner, "The lock was released for Redisson 0b8f3a11:57. No waiter was notified: other holders still have the lock.")
		require.Equal(t, map[string]string{"mode": "read", program.SomeOwner: "1"}, hashOf(t, s, "books"))
		status, text := post(t, page, "/unlock?name=books", takes(program.RedissonOwner))
		require.Equal(t, 409, status)
		require.Contains(t, text, "has changed since it was shown")
	})
}

func TestFormKeepsNewReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, _ := acting(t, s)
		s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1)
		_, text := get(t, page, "/unlock?name=books")
		address, form := formOf(t, text)
		s.Do(t, "HSET", "books", program.SomeOwner, 1)
		s.Do(t, "SET", "{books}:"+program.SomeOwner+":rwlock_timeout:1", 1, "PX", time.Hour.Milliseconds())
		status, text := post(t, page, address, form)
		require.Equal(t, 200, status, text)
		require.Equal(t, map[string]string{"mode": "read", program.SomeOwner: "1"}, hashOf(t, s, "books"))
	})
}

func hashOf(t *testing.T, s *server, name string) map[string]string {
	t.Helper()
	fields, err := redis.StringMap(s.Do(t, "HGETALL", name), nil)
	require.NoError(t, err)
	return fields
}

func TestFormReleasesOnePermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		s.Do(t, "SET", "downloads", 0)
		s.Do(t, "ZADD", protocol.PermitsKey("downloads"), protocol.PermitForever, "0123456789abcdef", protocol.PermitForever, "by hand")
		for i, id := range []string{"0123456789abcdef", "by hand"} {
			digits := hex.EncodeToString([]byte(id))
			oneForm(t, page, told, "downloads", digits,
				"The permit was released: "+digits+". No waiter was notified: no connection of the master is subscribed to the semaphore")
			require.Equal(t, []byte{byte('1' + i)}, s.Do(t, "GET", "downloads"))
			status, text := post(t, page, "/unlock?name=downloads", takes(digits))
			require.Equal(t, 409, status)
			require.Contains(t, text, "no held permit has the ID "+digits)
			told.take()
		}
	})
}

func TestHolderLinksNeedRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page := open(t, s, redlatchui.Options{Access: always(redlatchui.ReadOnly)})
		s.Do(t, "HSET", "books", "mode", "read", program.SomeOwner, 1, program.RedissonOwner, 1)
		s.Do(t, "SET", "downloads", 0)
		s.Do(t, "ZADD", protocol.PermitsKey("downloads"), protocol.PermitForever, "0123456789abcdef", protocol.PermitForever, strings.Repeat("x", 1000))
		for _, name := range []string{"books", "downloads"} {
			_, text := get(t, page, "/lock?name="+name)
			require.NotContains(t, text, "unlock?", name)
			require.Equal(t, 1, strings.Count(text, "<h1>"))
			status, _ := get(t, page, "/unlock?name="+name+"&owner="+evicts(program.SomeOwner).Get("owner"))
			require.Equal(t, 403, status)
		}
		page, _ = acting(t, s)
		status, _ := get(t, page, "/unlock?name=books&owner=!")
		require.Equal(t, 400, status)
		_, text := get(t, page, "/lock?name=downloads")
		require.Contains(t, text, "(2000 bytes)")
		require.Equal(t, 1, strings.Count(text, "unlock?"), "a long ID does not fit in an address")
	})
}
