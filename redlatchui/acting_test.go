package redlatchui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlock"
)

func by(user, remote string, r *http.Request) *http.Request {
	r.RemoteAddr = remote
	r.Header.Set("X-User", user)
	return r
}

func userOf(r *http.Request) string { return r.Header.Get("X-User") }

// busy starts an action for each viewer. The actions watch a long lease until leave is called.
func busy(t *testing.T, s *server, page http.Handler, viewers [][2]string) (leave func()) {
	t.Helper()
	s.Do(t, "HSET", "long", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "long", time.Hour.Milliseconds())
	ctx, cancel := context.WithCancel(t.Context())
	for _, v := range viewers {
		go func() {
			answer(page, by(v[0], v[1], postRequest("/unlock?name=long", takes(program.SomeOwner)).WithContext(ctx)))
		}()
	}
	synctest.Wait()
	return func() {
		cancel()
		synctest.Wait()
	}
}

// A viewer may have four concurrent actions. Other viewers and pages do not wait for them. Without
// users, viewers are identified by their addresses.
func TestActionsAreLimitedPerViewer(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		user             func(*http.Request) string
		busy, same, free [2]string // user and address
	}{
		"users":     {userOf, [2]string{"ops", "192.0.2.1:1"}, [2]string{"ops", "192.0.2.2:1"}, [2]string{"night", "192.0.2.1:1"}},
		"addresses": {nil, [2]string{"", "192.0.2.1:1"}, [2]string{"", "192.0.2.1:2"}, [2]string{"", "192.0.2.2:1"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				told := &audits{}
				page := open(t, s, redlatchui.Options{Access: always(redlatchui.FullAccess), User: c.user, Audit: told.add})
				unlock := func(viewer [2]string) int {
					s.Do(t, "HSET", "job", program.SomeOwner, 1)
					return answer(page, by(viewer[0], viewer[1], postRequest("/unlock?name=job", takes(program.SomeOwner)))).StatusCode
				}
				leave := busy(t, s, page, slices.Repeat([][2]string{c.busy}, 4))
				told.take()
				require.Equal(t, http.StatusServiceUnavailable, unlock(c.same))
				all := told.take()
				require.Len(t, all, 1)
				require.Equal(t, "refused", all[0].Outcome)
				require.Equal(t, "you have 4 actions in progress: wait for one to finish. No changes were made", all[0].Detail)
				require.True(t, program.Exists(t, s, "job"))
				got := answer(page, by(c.same[0], c.same[1], httptest.NewRequest(http.MethodGet, "http://localhost/lock?name=job", nil)))
				require.Equal(t, 200, got.StatusCode)
				require.Equal(t, 200, unlock(c.free))
				require.False(t, program.Exists(t, s, "job"))
				leave()
				require.Equal(t, 200, unlock(c.busy))
			})
		})
	}
}

func TestExcessActionsRejectedWhilePagesServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page := open(t, s, redlatchui.Options{Access: always(redlatchui.FullAccess), User: userOf})
		var viewers [][2]string
		for i := range 32 {
			viewers = append(viewers, [2]string{string(rune('a' + i/4)), "192.0.2.1:1"})
		}
		leave := busy(t, s, page, viewers)
		defer leave()
		status, text := post(t, page, "/unlock?name=long", takes(program.SomeOwner))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, "Too many actions in progress: try again in a minute. No changes were made.")
		for _, path := range []string{"/", "/lock?name=long", "/unlock?name=long", "/who"} {
			status, _ := get(t, page, path)
			require.Equal(t, 200, status, path)
		}
	})
}

func TestEvictRightShowsLinkNotCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		const link = `<a href="evict?name=job&amp;owner=`
		for what, c := range map[string]struct {
			viewer redlatchui.Access
			held   bool
		}{
			"may evict, held": {redlatchui.FullAccess, true}, "may evict, free": {redlatchui.MayEvict, false},
			"looks, held": {redlatchui.ReadOnly, true}, "unlocks, held": {redlatchui.MayUnlock, true}, "looks, free": {redlatchui.ReadOnly, false},
		} {
			s.Do(t, "FLUSHALL")
			program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
			if c.held {
				s.Do(t, "HSET", "job", program.SomeOwner, 1)
			}
			page := open(t, s, redlatchui.Options{Access: always(c.viewer)})
			text := deadWaiter(t, page, "job")
			may := c.viewer&redlatchui.MayEvict == redlatchui.MayEvict
			require.Equal(t, !may, strings.Contains(text, "The command redlatch evict removes it."), what)
			require.Equal(t, may, strings.Contains(text, "Evict it …"), what)
			if !may {
				require.NotContains(t, text, link, what)
			}
			if may {
				_, text = get(t, page, "/evict?name=job&owner="+evicts(program.RedissonOwner).Get("owner"))
				require.Regexp(t, "is dead(, and blocks the lock| and will block the queue) ", text, what)
				require.NotContains(t, text, "redlatch evict", what)
			}
			if !c.held || c.viewer&redlatchui.MayUnlock != redlatchui.MayUnlock {
				continue
			}
			_, text = post(t, page, "/unlock?name=job", takes(program.SomeOwner))
			require.Contains(t, text, "The lock was released for Redlatch 00000001:7. No waiter was notified: no connection is subscribed for the first", what)
			require.Equal(t, !may, strings.Contains(text, "If it is dead, `redlatch evict job "+program.RedissonOwner+"` removes it from the queue, and `redlatch evict --all-dead job` removes all dead waiters."), what)
			require.Equal(t, may, strings.Contains(text, "If it is dead, the page of the lock offers to evict it."), what)
		}
	})
}

func TestLeaseWithUnknownStartHasNoBar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page := open(t, s, redlatchui.Options{})
		s.Do(t, "HSET", "half", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "half", 15_000)
		_, text := get(t, page, "/lock?name=half")
		require.Regexp(t, `Lease [\d.]+ s left, fixed or renewed: not known yet`, textOf(text))
		require.NotContains(t, text, "<meter")

		says(t, page, "/lock?name=seen", "It is free")
		client := clientOf(t, s)
		hold, err := rlock.New(client, "seen").TryLock(t.Context(), rlock.WithLease(time.Minute))
		require.NoError(t, err)
		defer func() {
			require.NoError(t, hold.Unlock())
		}()
		says(t, page, "/lock?name=seen", "Held since")
		_, text = get(t, page, "/lock?name=seen")
		require.Regexp(t, `<meter aria-labelledby="lease" min="0" max="(61000|60\d\d\d|5[6-9]\d\d\d)" value="(60000|5\d\d\d\d)">`, text)

		s.Do(t, "PEXPIRE", "half", 30_000) // a renewal
		says(t, page, "/lock?name=half", "The lease is renewed, so")
		_, text = get(t, page, "/lock?name=half")
		require.Regexp(t, `<meter aria-labelledby="lease" min="0" max="(31000|30\d\d\d|2[6-9]\d\d\d)" value="(30000|2\d\d\d\d)">`, text)
	})
}

func TestRefusedActionLinksToLongName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		s.Do(t, "HSET", strings.Repeat("long", 300), program.SomeOwner, 1)
		_, text := get(t, page, "/") // the scan has found it
		link := regexp.MustCompile(`lock\?hash=[0-9a-f]{64}`).FindString(text)
		require.NotEmpty(t, link)
		status, text := post(t, page, "/un"+link, nil)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, `href="`+link+`"`)
		require.Contains(t, text, "(1200 bytes)")
		require.Contains(t, link, told.take()[0].Lock, "the audit contains the hash")
	})
}
