package redlatchui_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestNameGroupsAreSortedByTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		for i := range 30 {
			s.Do(t, "HSET", fmt.Sprintf("orders:%d", i), program.SomeOwner, 1)
			s.Do(t, "PEXPIRE", fmt.Sprintf("orders:%d", i), 60_000)
		}
		s.Do(t, "HSET", "billing:1", program.SomeOwner, 1) // no lease
		program.Enqueue(t, s, "billing:2", javaB+":4", time.Minute)
		program.Enqueue(t, s, "billing:2", javaB+":5", time.Minute)
		s.Do(t, "HSET", "alone", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "alone", 60_000)
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		text := says(t, page, "/?by=prefix", "1–3 of 3")
		billing, orders, other := strings.Index(text, "billing: Dead waiter in front 2 2 1 2"), strings.Index(text, "orders: 30 30"), strings.Index(text, "other names 1 1")
		require.Positive(t, billing, text)
		require.Less(t, billing, orders, text)
		require.Positive(t, other, text)
		_, raw := get(t, page, "/?by=prefix")
		require.Contains(t, raw, `<a href="?q=billing%3A%2A"><bdi>billing:</bdi></a>`)
		require.Contains(t, says(t, page, "/?q=billing%3A%2A", "2 of 33 locks"), "billing:2 fair Dead waiter in front")
	})
}

func TestEachKindIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		client := clientOf(t, s)
		sem := rsemaphore.NewExpirable(client, "crawl")
		_, err := sem.TrySetPermits(t.Context(), 3)
		require.NoError(t, err)
		permit, err := sem.Acquire(t.Context(), 1)
		require.NoError(t, err)
		defer func() { require.NoError(t, permit.Release()) }()
		latch := rlatch.New(client, "begin")
		_, err = latch.TrySetCount(t.Context(), 2)
		require.NoError(t, err)
		waited := make(chan error, 1)
		go func() { waited <- latch.Wait(t.Context()) }()
		s.Do(t, "SET", "visits", 41)
		s.Do(t, "HSET", "books", "mode", "read", javaA+":1", 1, javaB+":1", 1)
		s.Do(t, "HSET", "fenced", program.SomeOwner, 1)
		s.Do(t, "SET", "redisson_lock_token:{fenced}", 7)

		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		text := says(t, page, "/?sort=name", "3 locks")
		require.Contains(t, text, "books read/write, read")
		require.Contains(t, text, "crawl semaphore 1 taken, 2 free")
		require.Contains(t, text, "fenced fenced")
		text = says(t, page, "/?only=numbers&sort=name", "begin latch 2 to count down 1 listening")
		require.Contains(t, text, "crawl semaphore 1 taken, 2 free")
		require.Contains(t, text, "visits counter number 41")
		require.NotContains(t, text, "books")

		says(t, page, "/lock?name=crawl", "It is a semaphore with 2 free permits")
		require.Regexp(t, `Permits in use [0-9a-f]{32} [0-9.]+ s left`, says(t, page, "/lock?name=crawl", "Permits in use"))
		says(t, page, "/lock?name=begin", "It is a closed count-down latch: 2 to count down, and 1 connection waits.")
		says(t, page, "/lock?name=visits", "It is the number 41: the permits of a semaphore")
		require.Contains(t, says(t, page, "/lock?name=books", "and another client hold it"), "Redisson, held for at least ")
		for range 2 {
			require.NoError(t, latch.CountDown(t.Context()))
		}
		require.NoError(t, <-waited)
	})
}

func TestServerPageShowsDoctorFindings(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--appendonly", "no", "--tcp-keepalive", "0"))
	s.Do(t, "CONFIG", "RESETSTAT")
	page := open(t, s, redlatchui.Options{})
	text := says(t, page, "/server", "examined at")
	require.Equal(t, []string{"persistence", "keepalive"}, warnings(text))
	require.Contains(t, text, "persistence warning No append-only file: held locks do not survive a crash. Set appendonly yes")
	require.Contains(t, text, "keepalive warning Off: waiters on a lost host look alive forever.")
	require.Less(t, strings.Index(text, "keepalive warning"), strings.Index(text, "eviction ok"), "the worst first")
	require.Contains(t, text, "Not made here: scripts, script keys, script messages, lock, fair lock, pub/sub, plain rights")
	stats := s.CommandStats(t)
	for _, writes := range []string{"eval", "evalsha", "set", "hset", "del", "publish", "rpush", "incr"} {
		require.Zero(t, stats[writes], writes)
	}
	require.Zero(t, stats["scan"], "locks are not asked about")
	s.Do(t, "CONFIG", "SET", "tcp-keepalive", "60")
	_, again := get(t, page, "/server")
	require.Contains(t, textOf(again), "keepalive warning", "it is not examined anew for each browser")
}

// warnings returns the checks with a warning. It leaves out latency, which depends on the machine.
func warnings(text string) (checks []string) {
	for _, m := range regexp.MustCompile(`(\w+) warning [A-Z]`).FindAllStringSubmatch(text, -1) {
		if m[1] != "latency" {
			checks = append(checks, m[1])
		}
	}
	return checks
}

func TestServerPageForReadOnlyUser(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	looks := s.GiveLooks(t)
	s.Do(t, "HSET", "app:a", program.SomeOwner, 1)
	client, err := redlatch.Open(t.Context(), looks)
	require.NoError(t, err)
	page, err := redlatchui.New(client, redlatchui.Options{Pattern: "app:*"})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(page.Close(), client.Close())) }()
	text := says(t, page, "/server", "examined at")
	require.Empty(t, warnings(text))
	require.Contains(t, text, "eviction unknown INFO is not permitted (+info)")
	require.Contains(t, says(t, page, "/who", "1 client holds or waits"), program.SomeOwner[:36])
}

func TestLockPageNamesForeignKey(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.SomeOwner, time.Minute)
	s.Do(t, "SET", codec.QueueKey(name), "text")
	_, text := get(t, open(t, s, redlatchui.Options{}), "/lock?name="+name)
	require.Regexp(t, `role="alert">[A-Z][^<]*[.]</p>`, text, "a sentence")
	require.Contains(t, html.UnescapeString(text), `The key "`+codec.QueueKey(name)+`" holds a string, and the queue of a fair lock is a list`)
}

func TestFilterFindsNamesWithBrackets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "job[1]", javaA+":1", 1)
		s.Do(t, "HSET", "job2", javaA+":1", 1)
		page := open(t, s, redlatchui.Options{})
		for _, query := range []string{"job%5B1%5D", "job%5B", "job%5C%5B1*"} {
			require.Contains(t, says(t, page, "/?q="+query, "1 of 2 locks"), "job[1] plain", query)
		}
		says(t, page, "/?q=job%5B12%5D*", "1 of 2 locks")
	})
}

func TestClosedPageReturnsAnError(t *testing.T) {
	t.Parallel()
	page := open(t, redistest.Shared(t), redlatchui.Options{})
	require.NoError(t, page.Close())
	for _, address := range []string{"/", "/who", "/server", "/lock?name=job", "/events", "/events?name=job"} {
		status, text := get(t, page, address)
		require.Equal(t, http.StatusServiceUnavailable, status, address)
		require.Contains(t, text, "page is closed", address)
	}
}

const (
	javaA = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	javaB = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a12"
)

// The texts of charts are left out.
var tags = regexp.MustCompile(`<svg.*?</svg>|<[^>]*>|\s+`)

func textOf(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, " "))), " ")
}

// says returns the text of a page once it contains what.
func says(t *testing.T, page http.Handler, address, what string) (text string) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; <-time.After(time.Second) {
		_, got := get(t, page, address)
		if text = textOf(got); strings.Contains(text, what) {
			return text
		}
		require.True(t, time.Now().Before(deadline), "%s does not say %q: %s", address, what, text)
	}
}

func TestClientPageShowsHoldsAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "orders:1", javaA+":1", 1)
		s.Do(t, "HSET", "orders:2", javaA+":1", 2)
		s.Do(t, "HSET", "billing", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "billing", 60_000)
		s.Do(t, "SET", "redlatch:label:"+program.SomeOwner[:36], "billing@host-3")
		program.Enqueue(t, s, "billing", javaB+":4", time.Minute)
		program.Enqueue(t, s, "billing", javaA+":9", time.Minute)
		program.Enqueue(t, s, "free", program.SomeOwner, time.Minute)
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})

		text := says(t, page, "/who", "3 clients hold or wait")
		require.Contains(t, text, "billing@host-3 "+program.SomeOwner[:36]+" Redlatch since 2024-12-21")
		require.Contains(t, text, "Redisson 0b8f3a11 "+javaA+" Redisson 2 1")
		require.NotContains(t, says(t, page, "/who?q=billing", "1 client holds or waits"), javaA)
		text = says(t, page, "/who?client="+javaA, "Holds (2)")
		require.Contains(t, text, "orders:1 plain Held without a lease "+javaA+":1 , entered 1 ×, with 1 more lock")
		require.Contains(t, text, "orders:2 plain Held without a lease "+javaA+":1 , entered 2 ×, with 1 more lock")
		require.Contains(t, text, "Waits for (1)")
		require.Contains(t, text, "billing fair 2 of 2 billing@host-3 Redlatch 00000001:7 "+javaA+":9")
		require.Contains(t, text, "which clients wait for plain locks", "what the server does not have")
		text = says(t, page, "/who?client="+program.SomeOwner[:36], "billing@host-3 Redlatch since")
		require.Contains(t, text, "free fair 1 of 1, dead free "+program.SomeOwner)
		text = says(t, page, "/who?client=nobody", "No locks held. Waits for (0) Not queued for any lock.")
		require.NotContains(t, text, "orders")
	})
}

func TestOwnersLinkToClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "a", program.SomeOwner, 1)
		program.Enqueue(t, s, "a", javaB+":4", time.Minute)
		program.Enqueue(t, s, "a", "<b>odd\x1b", time.Minute)
		program.Enqueue(t, s, "a", strings.Repeat("long", 1000), time.Minute)
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		ours, odd := "who?client="+program.SomeOwner[:36], "who?client="+url.QueryEscape("<b>odd\x1b")
		for address, links := range map[string][]string{
			"/":                    {ours, "who?client=" + javaB},
			"/lock?name=a":         {ours, "who?client=" + javaB, odd},
			"/who":                 {ours, "who?client=" + javaB, odd},
			"/who?client=" + javaB: {ours},
			"/" + ours:             {"who?client=" + javaB},
		} {
			_, text := get(t, page, address)
			for _, link := range links {
				require.Contains(t, text, `<a href="`+html.EscapeString(link)+`">`, address)
			}
			require.NotContains(t, text, "<b>")
			require.NotContains(t, text, "\x1b")
		}
		_, text := get(t, page, "/"+odd)
		require.Contains(t, textOf(text), `"<b>odd\x1b"`)
		require.Contains(t, textOf(text), "Waits for (1)")
	})
}

func deadlock(t *testing.T, s redistest.Target) {
	t.Helper()
	for lock, of := range map[string][2]string{"x": {javaA + ":1", javaB + ":2"}, "y": {javaB + ":2", javaA + ":1"}} {
		s.Do(t, "HSET", lock, of[0], 1)
		s.Do(t, "PEXPIRE", lock, 60_000)
		program.Enqueue(t, s, lock, of[1], time.Minute)
	}
}

const (
	circleOfA = "Redisson 0b8f3a11:1 waits for y , which Redisson 0b8f3a12:2 holds"
	circleOfB = "Redisson 0b8f3a12:2 waits for x , which Redisson 0b8f3a11:1 holds"
)

func TestThreadDeadlockIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		deadlock(t, s)
		program.Listen(t, s, "x", javaB+":2")
		program.Listen(t, s, "y", javaA+":1")
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		// The lock's page reports this although no other page is open.
		text := says(t, page, "/lock?name=x", "in a deadlock")
		require.Contains(t, text, "It is in a deadlock: Redisson 0b8f3a11:1 waits for y, which Redisson 0b8f3a12:2 holds; "+
			"Redisson 0b8f3a12:2 waits for x, which Redisson 0b8f3a11:1 holds.")
		require.Contains(t, text, "Deadlock: owners wait for each other "+circleOfA+" "+circleOfB)
		text = says(t, page, "/who", "Deadlock: owners wait for each other")
		require.Contains(t, text, circleOfA+" "+circleOfB)
		for _, client := range []string{javaA, javaB} {
			require.Contains(t, says(t, page, "/who?client="+client, "Deadlock"), circleOfA+" "+circleOfB)
		}
		text = says(t, page, "/", "2 in trouble")
		require.Contains(t, text, "Deadlock: owners wait for each other. See which clients")
		require.Contains(t, text, "x fair In a deadlock")
		// A different thread is waiting, so this may not be a deadlock.
		s.Do(t, "LSET", "redisson_lock_queue:{y}", 0, javaA+":5")
		program.Listen(t, s, "y", javaA+":5")
		require.NotContains(t, says(t, page, "/", "2 locks · seen"), "eadlock")
		_, text = get(t, page, "/who")
		require.NotContains(t, textOf(text), "Deadlock:")
	})
}

// Two programs lock x and y in opposite orders. A third one waits without holding anything.
func TestNestedLocksOfGoProgramsAreShownAsDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		start := func(name string, locks ...string) {
			client := clientOf(t, s, redlatch.WithLabel(name))
			running.Go(func() {
				inside := ctx
				for _, lock := range locks {
					hold, err := rlock.New(client, lock).Lock(inside)
					if err != nil {
						return
					}
					defer func() { _ = hold.Unlock() }()
					inside = hold.Context(inside)
					time.Sleep(time.Second)
				}
			})
		}
		start("billing", "x", "y")
		start("shipping", "y", "x")
		time.Sleep(2 * time.Second)
		start("reports", "x")
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		text := says(t, page, "/who", "Deadlock")
		require.Regexp(t, `billing \(\S+ \S+:1\) waits for y , which shipping \(\S+ \S+:1\) holds shipping \(\S+ \S+:1\) waits for x , which billing`, text)
		require.Equal(t, 1, strings.Count(text, "Deadlock: owners wait for each other"))
		require.Contains(t, says(t, page, "/lock?name=x", "in a deadlock"), "It is in a deadlock: billing (")
		cancel()
		running.Wait()
		time.Sleep(time.Second)
		_, text = get(t, page, "/who")
		require.NotContains(t, textOf(text), "Deadlock")
	})
}

func TestDeadWaitersAreNotDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		deadlock(t, s)
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		_, text := get(t, page, "/")
		require.Contains(t, textOf(text), "x fair Dead waiter in front")
		for _, address := range []string{"/", "/who", "/who?client=" + javaA, "/lock?name=x"} {
			_, text := get(t, page, address)
			require.NotContains(t, textOf(text), "eadlock", address)
			require.NotContains(t, textOf(text), "wait for each other", address)
		}
		_, text = get(t, page, "/lock?name=x")
		require.Contains(t, textOf(text), "The first in the queue, Redisson 0b8f3a12:2, is dead")
	})
}

func TestLockPageShowsHolderWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "x", javaA+":1", 1)
		s.Do(t, "HSET", "y", javaB+":2", 1)
		program.Enqueue(t, s, "y", javaA+":1", time.Minute)
		program.Listen(t, s, "y", javaA+":1")
		program.Enqueue(t, s, "x", program.SomeOwner, time.Minute)
		page := open(t, s, redlatchui.Options{})
		_, text := get(t, page, "/lock?name=x")
		require.Contains(t, textOf(text), "Redisson 0b8f3a11:1 itself waits for y, which Redisson 0b8f3a12:2 holds.")
	})
}
