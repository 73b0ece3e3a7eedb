package browser

import (
	"context"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// javaClient returns what calls a live Redisson, which is a client of the server.
func javaClient(t *testing.T, s *redistest.Server) func(peer.Command) *peer.Call {
	t.Helper()
	program := peertest.Find(t, filepath.Join("..", ".."), javaRelease, "THE PAGE DID NOT FOLLOW A LOCK OF REDISSON")
	p := peertest.Start(t, program)
	call := func(c peer.Command) *peer.Call {
		return p.Go(peer.Command{"client": "java", "thread": "main"}.With(c))
	}
	_, err := call(peer.Command{"op": "client", "addresses": []string{s.URL()}}).Wait(atMost)
	require.NoError(t, err)
	return call
}

// goClient returns a client with a label.
func goClient(t *testing.T, s *redistest.Server, label string) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithLabel(label))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// answers are what a reader of a lock's page can say.
type answers struct {
	Holder, Since, Next string
	DeadInFront         bool
	Why                 string
}

var (
	heldBy   = regexp.MustCompile(`(?s)Held by\s+(.+?)\n`)
	held     = regexp.MustCompile(`(?s)\nHeld\s+(since [0-9:]+ UTC, for [0-9.]+ s)`)
	firstRow = regexp.MustCompile(`(?s)\n1\s+(alive|dead|unknown)\s+(\S+)\s`)
)

// read reads the answers from the text that the page shows, as a reader does.
func read(t *testing.T, b *tab) (a answers) {
	t.Helper()
	text := eval[string](t, b, "document.getElementById('live').innerText")
	find := func(what *regexp.Regexp) []string {
		found := what.FindStringSubmatch(text)
		require.NotNil(t, found, "%s: %s", what, text)
		return found
	}
	a.Holder, a.Since = find(heldBy)[1], find(held)[1]
	front := find(firstRow)
	a.DeadInFront, a.Next = front[1] == "dead", front[2]
	a.Why = eval[string](t, b, "document.querySelector('.why').innerText")
	require.Contains(t, text, a.Why)
	return a
}

// A lock that does not change hands: a live client of Go's holds it, and Java waits behind a
// waiter that has died. The page alone answers: which client holds it, since when, which is next,
// is a dead waiter in front, why does it not change hands.
func TestThePageAloneAnswersWhyALockIsStuck(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	call := javaClient(t, s)
	client := goClient(t, s, "billing@host-3 pid 812")
	const name = "billing:run"
	dead := other + ":41"
	address := serve(t, s)
	b := open(t, in)
	b.visit(t, address+"lock?name="+url.QueryEscape(name), 1280, "light")
	b.awaits(t, "It is free, and no client is queued for it.")
	hold, err := rfairlock.New(client, name).Lock(t.Context(), rlock.WithWatchdog(9*time.Second))
	require.NoError(t, err)
	s.Do(t, "RPUSH", codec.QueueKey(name), dead) // it has no subscriber
	s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(90*time.Second).UnixMilli(), dead)
	comes := call(peer.Command{"op": "lock", "kind": "fair", "name": name})
	b.awaits(t, "Queue (2)")
	b.awaits(t, "alive") // Java
	b.awaits(t, "is dead, and blocks it then")
	b.awaits(t, "The lease is renewed")
	b.run(t, chromedp.Poll(`/for ([3-9]|\d\d)/.test(document.getElementById("live").innerText)`, nil)) // seconds, or more
	a := read(t, b)
	require.Equal(t, "billing@host-3 pid 812", strings.Split(a.Holder, " Redlatch")[0])
	require.Regexp(t, `^since \d\d:\d\d:\d\d UTC, for \d+(\.\d)? s$`, a.Since)
	require.Equal(t, dead, a.Next)
	require.True(t, a.DeadInFront)
	require.Regexp(t, `^billing@host-3 pid 812 \(Redlatch [0-9a-f]{8}:\d+\) holds it\. The lease is renewed, so the client is alive: it moves when it is released\. `+
		`The first in the queue, Redisson 6f5d2c44:41, is dead, and blocks it then until its deadline, in \d+ s\. The command redlatch evict takes it out\.$`, a.Why)
	keep(t, b, "stuck")
	keepForPage(t, b)

	// The first page and that of the client say so, too.
	b.visit(t, address, 1280, "light")
	b.awaits(t, "Dead waiter in front")
	b.awaits(t, "billing@host-3 pid 812")
	b.visit(t, address+"who", 1280, "light")
	b.awaits(t, "3 clients hold or wait")
	require.NoError(t, hold.Unlock())
	s.Do(t, "LREM", codec.QueueKey(name), 1, dead)
	s.Do(t, "ZREM", codec.TimeoutKey(name), dead)
	_, err = comes.Wait(time.Minute)
	require.NoError(t, err)
	_, err = call(peer.Command{"op": "unlock", "kind": "fair", "name": name}).Wait(atMost)
	require.NoError(t, err)
	require.Empty(t, b.complained())
}

// A thread of Java and one of Go's callers take two locks in turns, then each other's: the pages
// of both clients follow, and show the circle.
func TestThePagesOfClientsFollowGoAndJavaIntoACircleAndOut(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	call := javaClient(t, s)
	client := goClient(t, s, "stock@go")
	address := serve(t, s)
	b, list := open(t, in), open(t, in)
	list.visit(t, address+"who", 1280, "light")
	list.awaits(t, "No client holds a lock or is queued.")
	mark(t, list)
	java := func(op, name string) *peer.Call {
		return call(peer.Command{"op": op, "kind": "fair", "name": name})
	}
	left, err := rfairlock.New(client, "left").Lock(t.Context())
	require.NoError(t, err)
	list.awaits(t, "stock@go")
	_, err = java("lock", "right").Wait(atMost)
	require.NoError(t, err)
	list.awaits(t, "2 clients hold or wait")
	link := eval[string](t, list, `[...document.querySelectorAll("th a")].find((a) => a.innerText.startsWith("stock@go")).href`)
	b.visit(t, link, 390, "dark")
	b.awaits(t, "Holds (1)")
	mark(t, b)
	waits := java("lock", "left")
	b.awaits(t, "Redisson") // next
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() {
		_, err := rfairlock.New(client, "right").Lock(ctx)
		came <- err
	}()
	b.awaits(t, "Waits for (1)")
	b.awaits(t, "Clients that wait for each other's locks")
	b.awaits(t, "waits for right, which Redisson")
	list.awaits(t, "waits for left, which stock@go")
	cancel() // one gives up
	require.ErrorIs(t, <-came, context.Canceled)
	b.awaits(t, "It is in no queue.")
	require.NoError(t, left.Unlock())
	_, err = waits.Wait(atMost)
	require.NoError(t, err)
	b.awaits(t, "It holds nothing.")
	for _, name := range []string{"left", "right"} {
		_, err = java("unlock", name).Wait(atMost)
		require.NoError(t, err)
	}
	list.awaits(t, "No client holds a lock or is queued.")
	require.True(t, marked(t, b), "the page was not loaded anew")
	require.True(t, marked(t, list), "the page was not loaded anew")
	require.Empty(t, append(b.complained(), list.complained()...))
}

// The page of the server says what is wrong, when it was looked at, and follows.
func TestTheServersPageInABrowser(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	b := open(t, in)
	b.visit(t, serve(t, s)+"server", 1280, "light")
	b.awaits(t, "examined at")
	b.awaits(t, "a crash forgets locks that are held")
	mark(t, b)
	s.Do(t, "CONFIG", "SET", "tcp-keepalive", "0")
	s.Do(t, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	b.awaitsFor(t, "may evict a lock that is held", 2*atMost)
	b.awaits(t, "3 warnings")
	require.True(t, marked(t, b), "the page was not loaded anew")
	require.Empty(t, b.complained())
}
