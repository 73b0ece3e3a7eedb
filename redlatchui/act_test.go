package redlatchui_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlock"
)

var (
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	box    = regexp.MustCompile(`<input type="checkbox" name="dead" value="([^"]*)" required>`)
	target = regexp.MustCompile(`<form class="act" method="post" action="([^"]*)">`)
)

// formOf reads the form on a page as a browser does, with all boxes checked.
func formOf(t *testing.T, text string) (address string, form url.Values) {
	t.Helper()
	to := target.FindStringSubmatch(text)
	require.NotNil(t, to, text)
	form = url.Values{"reason": {"host\nis gone"}}
	for _, m := range hidden.FindAllStringSubmatch(text, -1) {
		form.Add(m[1], html.UnescapeString(m[2]))
	}
	for _, m := range box.FindAllStringSubmatch(text, -1) {
		form.Add("dead", html.UnescapeString(m[1]))
	}
	return "/" + html.UnescapeString(to[1]), form
}

func TestFormReleasesNamedHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		s.Do(t, "SET", "redlatch:label:"+program.SomeOwner[:36], "night@host-3")
		long := strings.Repeat("long", 300)
		for what, c := range map[string]struct {
			name   string
			fields []any
			owners []string
			from   string
		}{
			"plain": {"a&b=<c>", []any{program.SomeOwner, 1}, []string{program.SomeOwner}, "night@host-3 (Redlatch 00000001:7)"},
			"long":  {long, []any{program.RedissonOwner, 2}, []string{program.RedissonOwner}, "Redisson 0b8f3a11:57"},
			"readers": {
				"r", []any{"mode", "read", program.SomeOwner, 1, program.RedissonOwner, 1}, []string{program.SomeOwner, program.RedissonOwner},
				"night@host-3 (Redlatch 00000001:7), Redisson 0b8f3a11:57",
			},
			"writer": {"w", []any{"mode", "write", program.SomeOwner + ":write", 1}, []string{program.SomeOwner + ":write"}, "night@host-3 (Redlatch 00000001:7w)"},
		} {
			s.Do(t, "HSET", append([]any{c.name}, c.fields...)...)
			where := "name=" + url.QueryEscape(c.name)
			if c.name == long {
				_, text := get(t, page, "/") // the scan has found it
				link := regexp.MustCompile(`lock\?(hash=[0-9a-f]{64})`).FindStringSubmatch(text)
				require.NotNil(t, link)
				where = link[1]
			}
			_, text := get(t, page, "/lock?"+where)
			require.Contains(t, html.UnescapeString(text), `href="unlock?`+where+`"`, what)
			status, text := get(t, page, "/unlock?"+where)
			require.Equal(t, 200, status, what)
			require.True(t, program.Exists(t, s, c.name), "looking takes nothing")
			address, form := formOf(t, text)
			require.ElementsMatch(t, c.owners, form["holder"], what)
			began := time.Now()
			status, text = post(t, page, address, form)
			require.Equal(t, 200, status, text)
			require.Contains(t, text, "<h1>Done", what)
			require.Contains(t, text, "The lock was released for "+c.from+". No waiter was notified: no connection", what)
			require.False(t, program.Exists(t, s, c.name), what)
			all := told.take()
			require.Len(t, all, 2, what)
			for i, outcome := range []string{"begun", "done"} {
				got := all[i]
				require.WithinRange(t, got.At, began, time.Now())
				require.Equal(t, time.UTC, got.At.Location())
				require.ElementsMatch(t, c.owners, got.Owners)
				require.Equal(t, outcome == "done", got.Detail != "")
				got.At, got.Owners, got.Detail = time.Time{}, nil, ""
				require.Equal(t, redlatchui.Attempt{
					Action: "unlock", User: "ops", Remote: "192.0.2.1:1234", Lock: c.name, Reason: "host\nis gone", Outcome: outcome,
				}, got, what)
			}
		}
	})
}

func TestFormKeepsLockWithOtherHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		s.Do(t, "HSET", "job", program.SomeOwner, 1)
		_, text := get(t, page, "/unlock?name=job")
		address, form := formOf(t, text)
		for what, change := range map[string][]any{
			"another owner":   {"job", program.RedissonOwner, 1},
			"another's reads": {"job", "mode", "read", program.RedissonOwner, 1},
			"free":            nil,
		} {
			s.Do(t, "DEL", "job")
			if change != nil {
				s.Do(t, "HSET", change...)
			}
			status, text := post(t, page, address, form)
			require.Equal(t, 409, status, what)
			require.Contains(t, text, map[bool]string{true: `Lock "job" has changed since it was shown, and was not unlocked.`, false: `Lock "job" is free.`}[change != nil])
			require.Contains(t, text, "<h1>Not done")
			require.Equal(t, change != nil, program.Exists(t, s, "job"), what)
			require.Equal(t, []string{"begun", "refused"}, told.outcomes(), what)
		}
	})
}

func TestIncompleteFormDoesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page, told := acting(t, s)
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	s.Do(t, "HSET", "\xff", program.SomeOwner, 1)
	program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
	with := func(form url.Values, name string, values ...string) url.Values {
		form[name] = values
		return form
	}
	many := make([]string, 33)
	for i := range many {
		many[i] = program.LongOwner(i + 1)
	}
	for what, c := range map[string]struct {
		path   string
		form   url.Values
		status int
		says   string
	}{
		"empty":         {"unlock?name=job", nil, 400, "A reason of at most 1600 bytes is required"},
		"no reason":     {"unlock?name=job", with(takes(program.SomeOwner), "reason", " "), 400, "A reason of at most 1600 bytes is required"},
		"a long reason": {"unlock?name=job", with(takes(program.SomeOwner), "reason", strings.Repeat("x", 1601)), 400, "A reason of at most 1600 bytes is required"},
		"none dead":     {"unlock?name=job", with(takes(program.SomeOwner), "dead"), 400, "Confirm for each holder"},
		"another dead":  {"unlock?name=job", with(takes(program.SomeOwner), "dead", program.RedissonOwner), 400, "Confirm for each holder"},
		"no holder":     {"unlock?name=job", with(takes(program.SomeOwner), "holder"), 400, "incomplete form"},
		"many holders":  {"unlock?name=job", takes(many...), 400, "incomplete form"},
		"a huge form":   {"unlock?name=job", with(takes(program.SomeOwner), "more", strings.Repeat("x", 70_000)), 400, "No changes were made"},
		"no name":       {"unlock", takes(program.SomeOwner), 400, "does not name a lock"},
		"no such lock":  {"unlock?hash=00", takes(program.SomeOwner), 404, "Unknown lock"},
		"odd name":      {"unlock?name=%FF", takes(program.SomeOwner), 400, "not valid UTF-8"},
		"no waiter":     {"evict?name=job", url.Values{"reason": {"x"}}, 400, "incomplete form"},
		"not base64":    {"evict?name=job", url.Values{"reason": {"x"}, "owner": {"!"}}, 400, "incomplete form"},
		"evict, silent": {"evict?name=job", with(evicts(program.RedissonOwner), "reason"), 400, "A reason of at most 1600 bytes is required"},
	} {
		status, text := post(t, page, "/"+c.path, c.form)
		require.Equal(t, c.status, status, what)
		require.Contains(t, strings.ToLower(text), strings.ToLower(c.says), what)
		require.Equal(t, []string{"refused"}, told.outcomes(), what)
	}
	for _, path := range []string{"/unlock?name=%FF", "/evict?name=job", "/evict?name=job&owner=!", "/unlock"} {
		status, _ := get(t, page, path)
		require.Equal(t, 400, status, path)
	}
	require.True(t, program.Exists(t, s, "job"))
	require.True(t, program.Exists(t, s, "\xff"))
	require.Len(t, program.QueueOf(t, s, "job"), 1)
	require.Zero(t, s.CommandStats(t)["publish"])
}

func TestRenewingHolderKeepsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		client := clientOf(t, s)
		hold, err := rlock.New(client, "job").TryLock(t.Context(), rlock.WithWatchdog(6*time.Second))
		require.NoError(t, err)
		status, text := post(t, page, "/unlock?name=job", takes(hold.Owner().String()))
		require.Equal(t, 409, status)
		require.Contains(t, text, `Lock "job": its holder is alive, its lease was renewed just now.`)
		all := told.take()
		require.Len(t, all, 2)
		require.Equal(t, "refused", all[1].Outcome)
		require.Contains(t, all[1].Detail, "its holder is alive")
		require.NoError(t, hold.Unlock())
	})
}

func TestDisconnectedHolderLearnsOfRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, _ := acting(t, s)
		far := &server{MiniServer: s.MiniServer}
		hold, err := rlock.New(clientOf(t, far), "job").TryLock(t.Context(), rlock.WithWatchdog(15*time.Second))
		require.NoError(t, err)
		work := hold.Context(t.Context())
		far.stalls.Store(true)
		status, text := post(t, page, "/unlock?name=job", takes(hold.Owner().String()))
		require.Equal(t, 200, status, text)
		require.False(t, program.Exists(t, s, "job"))
		require.NoError(t, work.Err(), "its lease is not over")
		far.stalls.Store(false)
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), redlatch.ErrLost)
		require.NotErrorIs(t, context.Cause(work), redlatch.LossNotRenewed)
	})
}

func TestFormEvictsOnlyDeadWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		const odd = "\x1b[2J\xff\r\n"
		for _, owner := range []string{odd, program.RedissonOwner, program.SomeOwner} {
			program.Enqueue(t, s, "job", owner, time.Hour)
		}
		program.Listen(t, s, "job", program.RedissonOwner)
		link := regexp.MustCompile(`href="(evict\?[^"]*)"`).FindStringSubmatch(deadWaiter(t, page, "job"))
		require.NotNil(t, link)
		status, text := get(t, page, "/"+html.UnescapeString(link[1]))
		require.Equal(t, 200, status)
		address, form := formOf(t, text)
		status, text = post(t, page, address, form)
		require.Equal(t, 200, status, text)
		require.Contains(t, text, `The waiter "\x1b[2J\xff\r\n" was evicted from the queue. The lock is free, and the next waiter was notified: `+program.RedissonOwner+".")
		require.Equal(t, []string{program.RedissonOwner, program.SomeOwner}, program.QueueOf(t, s, "job"))
		all := told.take()
		require.Len(t, all, 2)
		require.Equal(t, []string{odd}, all[1].Owners)
		require.Equal(t, "evict", all[1].Action)
		require.Equal(t, "done", all[1].Outcome)

		for owner, says := range map[string]string{
			program.RedissonOwner: "has a subscriber, so the waiter is alive and keeps its place", odd: "is not in the queue",
		} {
			status, text = post(t, page, "/evict?name=job", evicts(owner))
			require.Equal(t, 409, status)
			require.Contains(t, text, says)
			require.NotContains(t, text, "--even-if-alive")
			require.Equal(t, []string{"begun", "refused"}, told.outcomes())
		}
		require.Len(t, program.QueueOf(t, s, "job"), 2)
		_, text = get(t, page, "/evict?name=job&owner="+evicts(odd).Get("owner"))
		require.Contains(t, text, "no longer near the front of the queue")
		s.Do(t, "DEL", codec.QueueKey("job"))
	})
}

func TestFormEvictsAllDeadWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		link := func() []string {
			_, text := get(t, page, "/lock?name=job")
			return regexp.MustCompile(`href="(evict-all-dead\?[^"]*)">(Evict all [^<]*)<`).FindStringSubmatch(text)
		}
		program.Enqueue(t, s, "job", "first", time.Hour)
		deadWaiter(t, page, "job")
		require.Nil(t, link(), "one waiter has a link of its own")
		program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
		program.Listen(t, s, "job", program.RedissonOwner)
		for i := range 49 {
			program.Enqueue(t, s, "job", fmt.Sprint("dead:", i), time.Hour)
		}
		says(t, page, "/lock?name=job", "Evict all 50 dead")
		found := link()
		require.Equal(t, "Evict all 50 dead …", found[2])
		_, text := get(t, page, "/"+found[1])
		require.Contains(t, text, "50 dead waiters")
		address, form := formOf(t, text)
		status, text := post(t, page, address, url.Values{})
		require.Equal(t, 400, status, text)
		require.Equal(t, []string{"refused"}, told.outcomes(), "there is no reason")

		status, text = post(t, page, address, form)
		require.Equal(t, 200, status, text)
		require.Contains(t, text, "50 waiters were evicted from the queue. The lock is free, and the next waiter was notified: "+program.RedissonOwner+".")
		require.Equal(t, []string{program.RedissonOwner}, program.QueueOf(t, s, "job"))
		all := told.take()
		require.Len(t, all, 2)
		require.Empty(t, all[0].Owners)
		require.Len(t, all[1].Owners, 32)
		require.Equal(t, "evict-all-dead done", all[1].Action+" "+all[1].Outcome)
		require.Equal(t, "50 waiters were evicted from the queue; the lock is free, and the next waiter was notified: "+program.RedissonOwner, all[1].Detail)

		status, text = post(t, page, address, form)
		require.Equal(t, 409, status)
		require.Contains(t, text, "no waiter was evicted: all have a subscriber")
		require.Equal(t, []string{"begun", "refused"}, told.outcomes())
		says(t, page, "/"+found[1], "There is no dead waiter near the front of the queue.")
	})
}

// Waiters are evicted in batches of 100, after two looks.
func TestEarlierBatchesReportedWithError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		page, told := acting(t, s)
		for i := range 150 {
			program.Enqueue(t, s, "job", fmt.Sprint("dead:", i), time.Hour)
		}
		s.failsAt = 4
		status, text := post(t, page, "/evict-all-dead?name=job", url.Values{"reason": {"gone"}})
		s.Heal()
		require.Equal(t, 500, status)
		require.Contains(t, text, "100 waiters were evicted from the queue, then: ")
		require.NotContains(t, text, "before any change")
		require.Len(t, program.QueueOf(t, s, "job"), 50)
		all := told.take()
		require.Equal(t, "failed", all[1].Outcome)
		require.Contains(t, all[1].Detail, "100 waiters were evicted from the queue, then: ")
		require.Len(t, all[1].Owners, 32)
	})
}

func TestFailedAuditPreventsAction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		for fails, c := range map[string]struct {
			says  string
			calls int
		}{
			"begun": {"The audit could not be written: no changes were made: disk full.", 1},
			"done":  {"The audit does not contain the outcome: disk full.", 2},
		} {
			s.Do(t, "HSET", "job", program.SomeOwner, 1)
			calls := 0
			page := open(t, s, redlatchui.Options{
				Access: always(redlatchui.FullAccess), Audit: func(_ context.Context, a redlatchui.Attempt) error {
					if calls++; a.Outcome == fails {
						return errors.New("disk full")
					}
					return nil
				},
			})
			status, text := post(t, page, "/unlock?name=job", takes(program.SomeOwner))
			require.Equal(t, 500, status, fails)
			require.Contains(t, text, c.says)
			require.Equal(t, c.calls == 1, program.Exists(t, s, "job"), fails)
			require.Equal(t, c.calls == 2, strings.Contains(text, "<h1>Done"), fails)
			require.Equal(t, c.calls, calls, fails)
		}
	})
}

// While the holder is examined, the viewer leaves or the program exits.
func TestActionEndsWithRequestOrClose(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(page *redlatchui.Page, leave func()){
		"request": func(_ *redlatchui.Page, leave func()) { leave() },
		"page":    func(page *redlatchui.Page, _ func()) { _ = page.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				page, told := acting(t, s)
				leave := busy(t, s, page, [][2]string{{"ops", "192.0.2.1:1"}})
				require.Equal(t, []string{"begun"}, told.outcomes())
				end(page, leave)
				synctest.Wait()
				all := told.take()
				require.Len(t, all, 1)
				require.Equal(t, "failed", all[0].Outcome)
				require.Equal(t, "the request ended before any change was made", all[0].Detail)
				leave()
				require.True(t, program.Exists(t, s, "long"))
			})
		})
	}
}
