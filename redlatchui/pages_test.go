package redlatchui_test

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestGroupsOfNamesAreSortedByTrouble(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
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
}

func TestEachKindIsShownForWhatItIs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	sem := rsemaphore.NewExpirable(client, "crawl")
	_, err = sem.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	permit, err := sem.Acquire(t.Context(), 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, permit.Release()) }()
	latch := rlatch.New(client, "begin")
	_, err = latch.TrySet(t.Context(), 2)
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

	says(t, page, "/lock?name=crawl", "It is a semaphore with 2 of its permits free")
	says(t, page, "/lock?name=crawl", "Permits that are taken")
	says(t, page, "/lock?name=begin", "It is a count-down latch that is closed: 2 to count down, and 1 connection waits.")
	says(t, page, "/lock?name=visits", "It is a number, 41: a semaphore with so many permits")
	require.Contains(t, says(t, page, "/lock?name=books", "and another hold it"), "Redisson, held for at least ")
	for range 2 {
		require.NoError(t, latch.CountDown(t.Context()))
	}
	require.NoError(t, <-waited)
}

func TestTheServersPageHasWhatDoctorFinds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--appendonly", "no", "--tcp-keepalive", "0"))
	s.Do(t, "CONFIG", "RESETSTAT")
	page := open(t, s, redlatchui.Options{})
	text := says(t, page, "/server", "examined at")
	require.Contains(t, text, "0 errors, 2 warnings")
	require.Contains(t, text, "persistence warning No append-only file: a crash forgets locks that are held. Set appendonly yes")
	require.Contains(t, text, "keepalive warning Off: waiters of a host that vanished look alive for ever.")
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

// A user that may only look gets what it may see, and no error of a right that it does not need.
func TestTheServersPageOfAUserThatMayOnlyLook(t *testing.T) {
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
	require.Contains(t, text, "0 errors, 0 warnings")
	require.Contains(t, text, "eviction unknown Unknown: INFO is not permitted (+info)")
	require.Contains(t, says(t, page, "/who", "1 client holds or waits"), program.SomeOwner[:36])
}

// A key beside the lock that holds something else is named, not the lock.
func TestALocksPageNamesTheKeyThatHoldsSomethingElse(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.SomeOwner, time.Minute)
	s.Do(t, "SET", codec.QueueKey(name), "text")
	_, text := get(t, open(t, s, redlatchui.Options{}), "/lock?name="+name)
	require.Regexp(t, `role="alert">[A-Z][^<]*[.]</p>`, text, "a sentence")
	require.Contains(t, html.UnescapeString(text), `The key "`+codec.QueueKey(name)+`" holds a string, and the queue of a fair lock is a list`)
}

// Only * and ? make a pattern: a bracket may be part of a name, or of one that is being typed.
func TestTheFilterFindsNamesWithBrackets(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "job[1]", javaA+":1", 1)
	s.Do(t, "HSET", "job2", javaA+":1", 1)
	page := open(t, s, redlatchui.Options{})
	for _, query := range []string{"job%5B1%5D", "job%5B", "job%5C%5B1*"} {
		require.Contains(t, says(t, page, "/?q="+query, "1 of 2 locks"), "job[1] plain", query)
	}
	says(t, page, "/?q=job%5B12%5D*", "1 of 2 locks")
}

// An error is not an empty page with status 200.
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
