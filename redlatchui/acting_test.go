package redlatchui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlock"
)

// by returns a form that a user sends from an address.
func by(user, remote string, r *http.Request) *http.Request {
	r.RemoteAddr = remote
	r.Header.Set("X-User", user)
	return r
}

// One viewer has four actions under way, which look at leases for long: a fifth is refused, and
// neither the actions of others nor pages wait for them. Without users, addresses tell viewers apart.
func TestTheActionsOfOneViewerLeaveOthersRoom(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		user := func(r *http.Request) string { return r.Header.Get("X-User") }
		for what, c := range map[string]struct {
			user             func(*http.Request) string
			busy, same, free [2]string // user and address
		}{
			"users":     {user, [2]string{"ops", "192.0.2.1:1"}, [2]string{"ops", "192.0.2.2:1"}, [2]string{"night", "192.0.2.1:1"}},
			"addresses": {nil, [2]string{"", "192.0.2.1:1"}, [2]string{"", "192.0.2.1:2"}, [2]string{"", "192.0.2.2:1"}},
		} {
			told := &audits{}
			begun := make(chan struct{}, 16)
			page := open(t, s, redlatchui.Options{
				Access: always(redlatchui.FullAccess), User: c.user, Audit: func(ctx context.Context, a redlatchui.Attempt) error {
					err := told.add(ctx, a)
					if a.Outcome == redlatchui.OutcomeBegun {
						begun <- struct{}{}
					}
					return err
				},
			})
			for _, name := range []string{"long", "job"} {
				s.Do(t, "HSET", name, program.SomeOwner, 1)
			}
			s.Do(t, "PEXPIRE", "long", time.Hour.Milliseconds())
			ctx, leave := context.WithCancel(t.Context())
			var acts sync.WaitGroup
			for range 4 {
				acts.Go(func() {
					answer(page, by(c.busy[0], c.busy[1], postRequest("/unlock?name=long", takes(program.SomeOwner)).WithContext(ctx)))
				})
				<-begun
			}
			told.take()
			got := answer(page, by(c.same[0], c.same[1], postRequest("/unlock?name=job", takes(program.SomeOwner))))
			require.Equal(t, http.StatusServiceUnavailable, got.StatusCode, what)
			all := told.take()
			require.Len(t, all, 1, what)
			require.Equal(t, redlatchui.OutcomeRefused, all[0].Outcome)
			require.Equal(t, "you have 4 actions under way: wait until one has ended. Nothing was done", all[0].Detail)
			require.True(t, program.Exists(t, s, "job"), what)

			got = answer(page, by(c.same[0], c.same[1], httptest.NewRequest(http.MethodGet, "http://localhost/lock?name=job", nil)))
			require.Equal(t, 200, got.StatusCode, what)
			got = answer(page, by(c.free[0], c.free[1], postRequest("/unlock?name=job", takes(program.SomeOwner))))
			require.Equal(t, 200, got.StatusCode, what)
			require.False(t, program.Exists(t, s, "job"), what)

			leave()
			acts.Wait()
			s.Do(t, "HSET", "job", program.SomeOwner, 1)
			got = answer(page, by(c.busy[0], c.busy[1], postRequest("/unlock?name=job", takes(program.SomeOwner))))
			require.Equal(t, 200, got.StatusCode, "those have ended: "+what)
		}
	})
}

// All slots are taken, by many viewers.
func TestTooManyActionsAreRefusedAndPagesAreNot(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		begun := make(chan struct{}, 64)
		page := open(t, s, redlatchui.Options{
			Access: always(redlatchui.FullAccess), User: func(r *http.Request) string { return r.Header.Get("X-User") },
			Audit: func(_ context.Context, a redlatchui.Attempt) error {
				if a.Outcome == redlatchui.OutcomeBegun {
					begun <- struct{}{}
				}
				return nil
			},
		})
		s.Do(t, "HSET", "long", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "long", time.Hour.Milliseconds())
		ctx, leave := context.WithCancel(t.Context())
		var acts sync.WaitGroup
		for i := range 32 {
			acts.Go(func() {
				answer(page, by(string(rune('a'+i/4)), "192.0.2.1:1", postRequest("/unlock?name=long", takes(program.SomeOwner)).WithContext(ctx)))
			})
			<-begun
		}
		status, text := post(t, page, "/unlock?name=long", takes(program.SomeOwner))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, "Too many actions are under way: try again in a minute. Nothing was done.")
		for _, path := range []string{"/", "/lock?name=long", "/unlock?name=long", "/who"} {
			status, _ := get(t, page, path)
			require.Equal(t, 200, status, path)
		}
		leave()
		acts.Wait()
	})
}

// A command is said only to a viewer who has no link in its place.
func TestAViewerWhoMayEvictSeesTheLinkInPlaceOfTheCommand(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
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
			require.Equal(t, !may, strings.Contains(text, "The command redlatch evict takes it out."), what)
			require.Equal(t, may, strings.Contains(text, "Evict it …"), what)
			if !may {
				require.NotContains(t, text, link, what)
			}
			if may {
				_, text = get(t, page, "/evict?name=job&owner="+evicts(program.RedissonOwner).Get("owner"))
				require.Contains(t, text, "is dead, and blocks", what)
				require.NotContains(t, text, "redlatch evict", what)
			}
			if !c.held || c.viewer&redlatchui.MayUnlock != redlatchui.MayUnlock {
				continue
			}
			_, text = post(t, page, "/unlock?name=job", takes(program.SomeOwner))
			require.Contains(t, text, "The lock was taken from Redlatch 00000001:7. No waiter was notified: no connection is subscribed for the first", what)
			require.Equal(t, !may, strings.Contains(text, "If it is dead, `redlatch evict job "+program.RedissonOwner+"` takes it out of the queue, and `redlatch evict --all-dead job` all that are dead."), what)
			require.Equal(t, may, strings.Contains(text, "If it is dead, the page of the lock offers to evict it."), what)
		}
	})
}

// A bar says how much of a lease is left only when its beginning was seen: the first look finds a
// lease that may be half over.
func TestALeaseWhoseBeginningWasNotSeenHasNoBar(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		page := open(t, s, redlatchui.Options{})
		s.Do(t, "HSET", "half", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "half", 15_000)
		_, text := get(t, page, "/lock?name=half")
		require.Regexp(t, `Lease [\d.]+ s left, renewed or fixed: not known yet`, textOf(text))
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
