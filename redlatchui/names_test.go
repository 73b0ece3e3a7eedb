package redlatchui_test

import (
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
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

var (
	rowLink = regexp.MustCompile(`<th scope="row"><a href="([^"]*)"><bdi>([^<]*)</bdi></a>`)
	heading = regexp.MustCompile(`<h1><bdi>([^<]*)</bdi></h1>`)
)

func TestNamesAreEscapedAndLinked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		names := map[string]string{ // by the displayed text
			"orders:42":                         "orders:42",
			`<script>alert(1)</script>`:         `<script>alert(1)</script>`,
			`"><img src=x onerror=alert(1)>`:    `"\"><img src=x onerror=alert(1)>"`,
			"javascript:alert(1)":               "javascript:alert(1)",
			"a&name=b#c?d%00/../e":              "a&name=b#c?d%00/../e",
			"evil\u202egnp.exe":                 `"evil\u202egnp.exe"`,
			"\x1b[31mred\x00\r\n":               `"\x1b[31mred\x00\r\n"`,
			"bytes\xff\xfe":                     `"bytes\xff\xfe"`,
			"שלום":                              "שלום",
			" ":                                 `" "`,
			".":                                 ".",
			"..":                                "..",
			"../../etc":                         "../../etc",
			strings.Repeat("long", 300):         "longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong … longlonglonglonglonglonglonglonglonglong (1200 bytes)",
			strings.Repeat("m", 1<<18) + "\xff": "",
		}
		for name := range names {
			s.Do(t, "HSET", name, program.SomeOwner, 1)
		}
		page := open(t, s, redlatchui.Options{})
		status, text := get(t, page, "/?sort=name")
		require.Equal(t, 200, status)
		require.Less(t, len(text), 100_000, "a name of many bytes is cut")
		links := rowLink.FindAllStringSubmatch(text, -1)
		require.Len(t, links, len(names))
		require.Equal(t, 2, strings.Count(text, "<script"), "the page's own")
		require.NotContains(t, text, "<img src=x")
		seen := map[string]bool{}
		for _, l := range links {
			link, shown := html.UnescapeString(l[1]), html.UnescapeString(l[2])
			require.Truef(t, strings.HasPrefix(link, "lock?"), "a link that stays here: %q", link)
			require.Less(t, len(link), 5000)
			seen[shown] = true
			status, text := get(t, page, "/"+link)
			require.Equal(t, 200, status, shown)
			h1 := heading.FindStringSubmatch(text)
			require.NotNil(t, h1, shown)
			require.Equal(t, shown, html.UnescapeString(h1[1]))
			require.Contains(t, text, "held", shown)
			require.NotContains(t, text, "\u202e")
			require.NotContains(t, text, "\x1b")
			require.Equal(t, 2, strings.Count(text, "<script"), shown)
		}
		for name, shown := range names {
			if shown != "" {
				require.True(t, seen[shown], "%q as %q", name, shown)
			}
		}
	})
}

func TestOwnersAndLabelsAreEscaped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "a", program.SomeOwner, 1)
		s.Do(t, "SET", "redlatch:label:"+program.SomeOwner[:36], "<b>\u202elabel")
		s.Do(t, "RPUSH", "redisson_lock_queue:{a}", "</table><script>x</script>\x1b")
		s.Do(t, "SET", "crawl", 3)
		s.Do(t, "ZADD", protocol.PermitsKey("crawl"), time.Now().Add(time.Hour).UnixMilli(), "\u202e<b>\x1b"+strings.Repeat("x", 100_000))
		page := open(t, s, redlatchui.Options{})
		for address, has := range map[string]string{"/": "Dead waiter", "/lock?name=a": "Held by", "/lock?name=crawl": "Permits in use"} {
			status, text := get(t, page, address)
			require.Equal(t, 200, status)
			require.Contains(t, text, has)
			require.Less(t, len(text), 10_000)
			for _, raw := range []string{"<b>", "</table><script>", "\u202e", "\x1b"} {
				require.NotContains(t, text, raw, address)
			}
		}
	})
}

func TestOnlyMatchingLocksHavePages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "orders:1", program.SomeOwner, 1)
		s.Do(t, "HSET", "secret:1", program.SomeOwner, 1)
		page := open(t, s, redlatchui.Options{Pattern: "orders:*"})
		_, text := get(t, page, "/")
		require.Contains(t, text, "orders:1")
		require.NotContains(t, text, "secret:1")
		for _, path := range []string{"/lock", "/events"} {
			status, text := get(t, page, path+"?name="+url.QueryEscape("secret:1"))
			require.Equal(t, 404, status)
			require.NotContains(t, text, program.SomeOwner)
			require.Contains(t, text, "This page does not show locks of that name.")
		}
		status, _ := get(t, page, "/lock?hash="+strings.Repeat("0", 64))
		require.Equal(t, 404, status)
		status, _ = get(t, page, "/lock")
		require.Equal(t, 400, status)
	})
}

func TestManyLocksArePaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		for i := range 250 {
			s.Do(t, "HSET", fmt.Sprintf("orders:%03d", i), javaA+":1", 1)
		}
		page := open(t, s, redlatchui.Options{})
		for n, c := range map[string]struct {
			shown, last string
			links       []string
		}{
			"1": {"1–100 of 250", "orders:099", []string{"page=2"}},
			"2": {"101–200 of 250", "orders:199", []string{"?q=orders&amp;sort=name\"", "page=3"}},
			"9": {"201–250 of 250", "orders:249", []string{"page=2"}},
		} {
			_, text := get(t, page, "/?q=orders&sort=name&page="+n)
			require.Contains(t, textOf(text), c.shown, n)
			require.Contains(t, text, "<bdi>"+c.last+"</bdi>", n)
			for _, link := range c.links {
				require.Contains(t, text, link, n)
			}
		}
		text := says(t, page, "/who?client="+javaA, "Holds (200 and 50 more)")
		require.Equal(t, 200, strings.Count(text, "with 249 more locks"))
	})
}

func TestLongHolderListIsTruncated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		readers := []any{"books", "mode", "read"}
		for i := range 150 {
			readers = append(readers, fmt.Sprint(javaA, ":", i+1), 1)
		}
		s.Do(t, "HSET", readers...)
		page := open(t, s, redlatchui.Options{Access: always(redlatchui.FullAccess)})
		text := says(t, page, "/lock?name=books", "and 149 others hold it")
		require.Equal(t, 100, strings.Count(text, "entered 1 ×"))
		require.Contains(t, text, "and 50 more Held for at least")
		require.NotContains(t, text, "Force unlock")
		require.Contains(t, says(t, page, "/unlock?name=books", "too many holders for a form"), "books")
	})
}

func TestLongCycleIsTruncated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		for i := range 60 {
			lock := fmt.Sprint("orders:", i)
			s.Do(t, "HSET", lock, fmt.Sprint(javaA, ":", i+1), 1)
			waiter := fmt.Sprint(javaA, ":", (i+1)%60+1)
			program.Enqueue(t, s, lock, waiter, time.Hour)
			program.Listen(t, s, lock, waiter)
		}
		page := open(t, s, redlatchui.Options{Every: 1000 * time.Millisecond})
		text := says(t, page, "/who", "and 10 more waits")
		require.Equal(t, 50, strings.Count(text, " waits for orders:"))
	})
}

func TestRejectedValuesAreTruncatedInAudit(t *testing.T) {
	t.Parallel()
	page, told := acting(t, redistest.Shared(t))
	owners := make([]string, 20)
	for i := range owners {
		owners[i] = strings.Repeat("o", 2000)
	}
	name := strings.Repeat("n", 5000)
	for _, form := range []url.Values{
		{"holder": owners, "dead": owners[:1], "reason": {"x"}}, {"holder": make([]string, 500)}, {"reason": {strings.Repeat("r", 10_000)}},
	} {
		status, _ := post(t, page, "/unlock?name="+name, form)
		require.Equal(t, 400, status)
		all := told.take()
		require.Len(t, all, 1)
		require.Len(t, all[0].Lock, 64)
		require.LessOrEqual(t, len(all[0].Owners), 32)
		require.LessOrEqual(t, len(strings.Join(all[0].Owners, "")), 20*1024)
		require.LessOrEqual(t, len(all[0].Reason), 1600)
	}
}

func waitScene(t *testing.T, s redistest.Target) {
	t.Helper()
	for _, name := range []string{"app:plain", "app:calm"} {
		s.Do(t, "HSET", name, program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", name, 600_000)
	}
	s.Do(t, "HSET", "app:books", "mode", "write", javaA+":1:write", 1)
	s.Do(t, "PEXPIRE", "app:books", 600_000)
	program.Enqueue(t, s, "app:fair", javaB+":4", time.Minute)
	s.Do(t, "SET", "app:crawl", 0)
	s.Do(t, "ZADD", protocol.PermitsKey("app:crawl"), time.Now().Add(time.Hour).UnixMilli(), "0123456789abcdef")
	for _, channel := range []string{
		codec.LockChannel("app:plain"), codec.LockChannel("app:plain"), protocol.ReadWriteChannel("app:books"), protocol.SemaphoreChannel("app:crawl"),
	} {
		c := s.Dial(t)
		require.NoError(t, c.Send("SUBSCRIBE", channel))
		require.NoError(t, c.Flush())
		_, err := c.Receive()
		require.NoError(t, err)
	}
}

func TestPageShowsSubscriberCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		waitScene(t, s)
		page := open(t, s, redlatchui.Options{})
		text := says(t, page, "/?sort=queue", "5 locks")
		for _, row := range []string{"app:plain plain Redlatch 00000001:7 at least", "2 listening app:books", "1 listening app:crawl semaphore 1 taken, 0 free 1 listening"} {
			require.Contains(t, text, row)
		}
		require.NotContains(t, text, "not known")
		text = says(t, page, "/lock?name=app:plain", "Held by")
		require.Contains(t, text, "No client is queued on the server, and 2 connections are subscribed to the lock's release. This indicates how many clients wait")
		text = says(t, page, "/lock?name=app:books", "Held by")
		require.Contains(t, text, "1 connection is subscribed to the lock's release.")
		text = says(t, page, "/lock?name=app:calm", "Held by")
		require.Contains(t, text, "no connection is subscribed to the lock's release: no client seems to be waiting.")
		require.Contains(t, says(t, page, "/lock?name=app:crawl", "without a free permit"), "and 1 connection waits: until a permit is released")
	})
}

func TestUncountableSubscribersAreUnknown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	waitScene(t, s)
	s.Do(t, "ACL", "SETUSER", "blind", "on", "nopass", "~*", "&*", "+@all", "-pubsub")
	client, err := redlatch.Open(t.Context(), s.UserURL("blind"))
	require.NoError(t, err)
	page, err := redlatchui.New(client, redlatchui.Options{Every: 100 * time.Millisecond})
	require.NoError(t, err)
	plain, err := redlatchui.New(client, redlatchui.Options{Pattern: "app:calm"})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(page.Close(), plain.Close(), client.Close())) }()
	require.Contains(t, says(t, plain, "/", "1 lock ·"), "Unknown: dead waiters", "of plain locks alone")
	text := says(t, page, "/?sort=name", "app:fair fair Free with a queue free 1 Redisson") // for two looks
	require.Contains(t, text, "5 locks")
	require.Contains(t, text, "Unknown: dead waiters, and the numbers of waiters for permits, latches and locks without a queue: subscribers cannot be counted. ")
	require.Contains(t, text, "app:books read/write, write Redisson 0b8f3a11:1w at least")
	require.Contains(t, text, "not known app:calm")
	require.Contains(t, text, "1 taken, 0 free not known")
	for _, name := range []string{"plain", "calm", "books"} {
		text := says(t, page, "/lock?name=app:"+name, "Held by")
		require.Contains(t, text, "subscribers cannot be counted.", name)
		require.NotContains(t, text, "no connection is subscribed", name)
	}
	require.Contains(t, says(t, page, "/lock?name=app:crawl", "without a free permit"), "the number of waiters is unknown")
	text = says(t, page, "/lock?name=app:fair", "1 unknown")
	require.Contains(t, text, "is alive: subscribers cannot be counted.")
}

// Users are not replicated.
func TestUserMustExistOnReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	looks := s.GiveLooks(t)
	program.Enqueue(t, s, "app:fair", javaB+":4", time.Hour)
	client, err := redlatch.Open(t.Context(), looks)
	require.NoError(t, err)
	page, err := redlatchui.New(client, redlatchui.Options{Every: 100 * time.Millisecond, Pattern: "app:*"})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(page.Close(), client.Close())) }()
	text := says(t, page, "/lock?name=app:fair", "1 unknown")
	require.Contains(t, text, "replica "+replica.Addr())
	// As described in docs/ui.md.
	replica.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", ">password", "+pubsub|numsub")
	says(t, page, "/lock?name=app:fair", "1 dead")
	says(t, page, "/", "Dead waiter in front")
}
