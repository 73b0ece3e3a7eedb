package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	java  = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	other = "9a1f0c0e-52c1-4f6e-8a35-0b7f6f5d2c44"
	ours  = "0193e6c0-6f00-7000-8000-000000000001"
	// javaRelease is the release of Redisson that takes turns.
	javaRelease = "4.3.1"
)

// fill makes locks of all kinds of trouble, and names that are not harmless.
func fill(t *testing.T, s *redistest.Server) {
	t.Helper()
	for i := range 120 {
		s.Do(t, "HSET", fmt.Sprintf("orders:%d", i), fmt.Sprintf("%s:%d", java, i), 1)
		s.Do(t, "PEXPIRE", fmt.Sprintf("orders:%d", i), 3_600_000)
	}
	s.Do(t, "HSET", "billing:run", ours+":7", 2)
	s.Do(t, "PEXPIRE", "billing:run", 600_000)
	s.Do(t, "SET", "redlatch:label:"+ours, "billing@host-3 pid 812")
	now := time.Now()
	for i := range 5 {
		owner := fmt.Sprintf("%s:%d", java, i+1)
		s.Do(t, "RPUSH", codec.QueueKey("billing:run"), owner)
		s.Do(t, "ZADD", codec.TimeoutKey("billing:run"), now.Add(time.Duration(i+1)*time.Minute).UnixMilli(), owner)
	}
	s.Do(t, "RPUSH", codec.QueueKey("nightly-report"), java+":77")
	s.Do(t, "ZADD", codec.TimeoutKey("nightly-report"), now.Add(time.Hour).UnixMilli(), java+":77")
	for i, lock := range []string{"stock:left", "stock:right"} {
		owners := []string{java + ":90", other + ":91"}
		s.Do(t, "HSET", lock, owners[i], 1)
		s.Do(t, "PEXPIRE", lock, 600_000)
		s.Do(t, "RPUSH", codec.QueueKey(lock), owners[1-i])
		s.Do(t, "ZADD", codec.TimeoutKey(lock), now.Add(time.Hour).UnixMilli(), owners[1-i])
		_, err := s.Dial(t).Do("SUBSCRIBE", codec.OwnerChannel(lock, owners[1-i])) // a waiter that is dead is in no circle
		require.NoError(t, err)
	}
	s.Do(t, "SET", "crawl", 3)
	s.Do(t, "ZADD", codec.PermitsKey("crawl"), now.Add(time.Hour).UnixMilli(), "0123456789abcdef", now.Add(time.Minute).UnixMilli(), "fedcba9876543210")
	s.Do(t, "SET", "visits", 12)
	s.Do(t, "HSET", "rates", "mode", "read", java+":1", 1, java+":2", 1)
	s.Do(t, "PEXPIRE", "rates", 600_000)
	for _, name := range hostile {
		s.Do(t, "HSET", name, ours+":3", 1)
	}
}

// hostile are names that must stay text.
var hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "evil\u202egnp.exe", "\x1b[31mred", "bytes\xff\xfe",
}

// flaws returns what is wrong with the page that a tab shows: elements without a name, text
// that is hard to read, badges of several lines, and what is wider than the window.
const flaws = `(() => {
	const found = [];
	const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4))
		.reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
	const paper = (node) => {
		for (let at = node; at; at = at.parentElement) {
			const color = rgb(getComputedStyle(at).backgroundColor);
			if (color.length === 3 || color[3] > 0) return color;
		}
		return [255, 255, 255];
	};
	for (const node of document.querySelectorAll("body *")) {
		const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim());
		if (!own || node.tagName === "NOSCRIPT" || !node.getClientRects().length) continue;
		const [a, b] = [light(rgb(getComputedStyle(node).color)), light(paper(node))].sort((x, y) => y - x);
		const ratio = (a + .05) / (b + .05);
		if (ratio < 4.5) found.push("contrast " + ratio.toFixed(2) + ": " + node.innerText.slice(0, 40));
	}
	for (const node of document.querySelectorAll("a, button, input:not([type=hidden]), select, meter")) {
		const named = node.innerText?.trim() || node.getAttribute("aria-labelledby") || [...(node.labels || [])].some((l) => l.innerText.trim());
		if (!named && !node.hidden) found.push("no name: " + node.outerHTML.slice(0, 80));
	}
	for (const node of document.querySelectorAll(".badge, .tag, .kind, .held, .free")) {
		const range = document.createRange();
		range.selectNodeContents(node);
		if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push("breaks into lines: " + node.innerText);
	}
	if (document.querySelectorAll("h1").length !== 1) found.push("not one heading");
	if (!document.documentElement.lang || !document.title) found.push("no language or title");
	if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window: " + document.documentElement.scrollWidth);
	return found;
})()`

// Each page in both widths and themes. REDLATCH_PICTURES names a folder to keep them in.
func TestEachPageCanBeReadAndTheBrowserHasNoComplaint(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	fill(t, s)
	address := serve(t, s)
	pages := map[string]string{
		"locks": "", "trouble": "?only=trouble", "groups": "?by=prefix", "numbers": "?only=numbers", "semaphore": "lock?name=crawl",
		"clients": "who", "client": "who?client=" + java, "deadlock": "who?client=" + other, "circle": "lock?name=stock%3Aleft", "gone": "who?client=gone", "server": "server", "held": "lock?name=billing%3Arun", "free": "lock?name=nightly-report", "rates": "lock?name=rates",
		"unknown": "lock",
	}
	waitFor := map[string]string{
		"unknown": "The address names no lock", "deadlock": "Deadlock:", "clients": "Deadlock:", "circle": "It is in a circle of waits", "trouble": "In a circle of waits",
		"groups": "stock: In a circle of waits", "server": "examined at", "semaphore": "Permits that are taken", "gone": "It holds nothing.",
		"numbers": "visits counter number 12", "client": "Holds (",
	}
	for i, name := range hostile {
		pages[fmt.Sprint("hostile-", i)] = "lock?name=" + url.QueryEscape(name)
	}
	for _, width := range []int64{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(width, " ", theme), func(t *testing.T) {
				t.Parallel()
				b := open(t, in)
				for what, path := range pages {
					b.visit(t, address+path, width, theme)
					if said := waitFor[what]; said != "" {
						b.awaits(t, said)
					}
					require.Empty(t, eval[[]string](t, b, flaws), what)
					keep(t, b, fmt.Sprintf("%s-%d-%s", what, width, theme))
				}
				for _, c := range b.complained() {
					require.Contains(t, c, "400", "the page of no lock") // the browser reports its status
				}
			})
		}
	}
}

// A long address and pattern, and troubles of each kind, in a narrow window.
func TestBadgesAreOneLine(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "HSET", "orders:1", ours+":1", 1)
	queueFor(t, s, "orders:2", java+":1")
	s.Do(t, "HSET", "orders:3", java+":1", 1)
	queueFor(t, s, "orders:3", java+":2")
	s.Do(t, "HSET", "orders:4", "mode", "read", java+":1", 1)
	queueFor(t, s, "orders:4", java+":2")
	b := open(t, in)
	for _, pattern := range []string{"orders:*", "orders:*" + strings.Repeat("*", 30)} {
		address := serveWith(t, s, redlatchui.Options{Pattern: pattern})
		for _, width := range []int64{390, 360, 760, 1280} {
			b.visit(t, address, width, "light")
			b.awaits(t, "4 in trouble")
			require.Empty(t, eval[[]string](t, b, flaws), "%d %s", width, pattern)
			keep(t, b, fmt.Sprintf("badges-%d-%d", len(pattern), width))
		}
	}
}

func TestThePageFollowsALockThatGoAndJavaTakeInTurns(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	call := javaClient(t, s)
	client := goClient(t, s, "billing@go")
	const name = "billing:run"
	b := open(t, in)
	b.visit(t, serve(t, s)+"lock?name="+url.QueryEscape(name), 1280, "light")
	b.awaits(t, "It is free, and no client is queued for it.")
	mark(t, b)
	for range 2 {
		hold, err := rfairlock.New(client, name).Lock(t.Context())
		require.NoError(t, err)
		b.awaits(t, "billing@go")
		comes := call(peer.Command{"op": "lock", "kind": "fair", "name": name})
		b.awaits(t, "Queue (1)")
		b.awaits(t, "alive")
		require.NoError(t, hold.Unlock())
		_, err = comes.Wait(atMost)
		require.NoError(t, err)
		b.awaits(t, "Redisson, entered 1 ×")
		// A look between the release and the acquire finds the lock free.
		b.runFor(t, atMost, chromedp.Poll(`/(Passed to|Taken by)\s+Redisson/.test(document.getElementById("live").innerText)`, nil))
		queued := make(chan *error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			h, err := rfairlock.New(client, name).Lock(ctx)
			if err == nil {
				err = h.Unlock()
			}
			queued <- &err
		}()
		b.awaits(t, "Queue (1)")
		_, err = call(peer.Command{"op": "unlock", "kind": "fair", "name": name}).Wait(atMost)
		require.NoError(t, err)
		require.NoError(t, *<-queued)
		cancel()
		b.awaits(t, "It is free, and no client is queued for it.")
	}
	require.True(t, marked(t, b), "the page was not loaded anew")
	require.Empty(t, b.complained())
}

// mark marks the document, which a page that is loaded anew forgets.
func mark(t *testing.T, b *tab) { t.Helper(); eval[bool](t, b, "window.marked = true") }

func marked(t *testing.T, b *tab) bool { t.Helper(); return eval[bool](t, b, "window.marked === true") }

func TestTheKeyboardIsEnoughAndTheFocusStays(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "HSET", "b", ours+":1", 1)
	b := open(t, in)
	b.visit(t, serve(t, s), 1280, "light")
	b.awaits(t, "b")
	var at string
	for range 24 {
		b.run(t, chromedp.KeyEvent(kb.Tab))
		if at = eval[string](t, b, "document.activeElement.innerText"); at == "b" {
			break
		}
	}
	require.Equal(t, "b", at, "a link that can be reached with the tab key")
	s.Do(t, "HSET", "a", ours+":2", 1) // comes before it
	b.awaits(t, "a plain")
	require.Equal(t, "b", eval[string](t, b, "document.activeElement.innerText"))
	b.run(t, chromedp.KeyEvent(kb.Enter))
	b.awaits(t, "holds it without a lease")
	require.Equal(t, "b", eval[string](t, b, "document.querySelector('h1').innerText"))
	require.Empty(t, b.complained())
}

func TestWithoutJavaScriptThePageLoadsItselfAgain(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "HSET", "first", ours+":1", 1)
	b := open(t, in)
	b.run(t, emulation.SetScriptExecutionDisabled(true))
	b.visit(t, serve(t, s), 390, "light")
	b.run(t, chromedp.WaitVisible(`a[href="lock?name=first"]`, chromedp.ByQuery))
	s.Do(t, "HSET", "second", ours+":1", 1)
	b.run(t, chromedp.WaitVisible(`a[href="lock?name=second"]`, chromedp.ByQuery), // after five seconds
		chromedp.SendKeys(`input[name="q"]`, "first"+kb.Enter, chromedp.ByQuery),
		chromedp.WaitNotPresent(`a[href="lock?name=second"]`, chromedp.ByQuery),
		chromedp.Click(`a[href="lock?name=first"]`, chromedp.ByQuery), chromedp.WaitVisible(".why", chromedp.ByQuery))
	require.Empty(t, b.complained())
}
