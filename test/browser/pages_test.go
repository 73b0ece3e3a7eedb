package browser

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// fill creates locks with all kinds of problems, and hostile names.
func fill(t *testing.T, s *redistest.Server) {
	t.Helper()
	for i := range 120 {
		s.Do(t, "HSET", fmt.Sprintf("orders:%d", i), fmt.Sprintf("%s:%d", java, i), 1)
		s.Do(t, "PEXPIRE", fmt.Sprintf("orders:%d", i), 3_600_000)
	}
	s.Do(t, "HSET", "billing:run", ours+":7", 2)
	s.Do(t, "PEXPIRE", "billing:run", 600_000)
	s.Do(t, "SET", "redlatch:label:"+ours, "billing@host-3 pid 812")
	for i := range 5 {
		enqueue(t, s, "billing:run", fmt.Sprintf("%s:%d", java, i+1))
	}
	enqueue(t, s, "nightly-report", java+":77")
	for i, lock := range []string{"stock:left", "stock:right"} {
		owners := []string{java + ":90", other + ":91"}
		s.Do(t, "HSET", lock, owners[i], 1)
		s.Do(t, "PEXPIRE", lock, 600_000)
		enqueue(t, s, lock, owners[1-i])
		listen(t, s, lock, owners[1-i])
	}
	s.Do(t, "SET", "crawl", 3)
	now := time.Now()
	s.Do(t, "ZADD", protocol.PermitsKey("crawl"), now.Add(time.Hour).UnixMilli(), "0123456789abcdef", now.Add(time.Minute).UnixMilli(), "fedcba9876543210")
	s.Do(t, "SET", "visits", 12)
	s.Do(t, "HSET", "rates", "mode", "read", java+":1", 1, java+":2", 1)
	s.Do(t, "PEXPIRE", "rates", 600_000)
	s.Do(t, "HSET", "mixed", "mode", "read", java+":1", 1)
	enqueue(t, s, "mixed", java+":2")
	for _, name := range hostile {
		s.Do(t, "HSET", name, ours+":3", 1)
	}
}

// hostile contains names that must be shown as text.
var hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "evil\u202egnp.exe", "\x1b[31mred", "bytes\xff\xfe",
}

// flaws is a script that returns the flaws of a page: elements without a name, text with little contrast, badges with
// several lines, and elements that are wider than the window.
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
		if (!named && node.checkVisibility()) found.push("no name: " + node.outerHTML.slice(0, 80));
	}
	for (const node of document.querySelectorAll(".badge, .tag, .kind, .free")) {
		const range = document.createRange();
		range.selectNodeContents(node);
		if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push("breaks into lines: " + node.innerText);
	}
	for (const node of document.querySelectorAll("svg")) {
		const text = node.getAttribute("aria-hidden") === "true" ? node.closest(".tile")?.innerText.trim() :
			node.getAttribute("role") === "img" && node.querySelector("title")?.textContent;
		if (!text) found.push("a chart without a text");
		if (!node.getClientRects().length) found.push("a chart that is not shown");
	}
	if (document.querySelectorAll("h1").length !== 1) found.push("not one heading");
	if (!document.documentElement.lang || !document.title) found.push("no language or title");
	if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window: " + document.documentElement.scrollWidth);
	return found;
})()`

// readable requires that the page has no flaws in all widths and themes.
func readable(t *testing.T, b *tab, what string) {
	t.Helper()
	for _, width := range []int64{1280, 760, 390, 360} {
		for _, theme := range []string{"light", "dark"} {
			b.run(t, windowOf(width, theme))
			require.Empty(t, eval[[]string](t, b, flaws), "%s %d %s", what, width, theme)
		}
	}
}

func pageIsReadable(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	fill(t, s)
	address, _ := serveActions(t, s)
	b := open(t, in)
	for path, text := range map[string]string{ // the text that appears on the page
		"": "", "?only=trouble": "In a deadlock", "?by=prefix": "stock: In a deadlock", "?only=numbers": "visits counter number 12",
		"who": "Deadlock:", "who?client=" + java: "Holds (", "who?client=" + other: "Deadlock:", "who?client=gone": "No locks held.",
		"server": "examined at", "lock": "The URL does not name a lock", "lock?name=crawl": "Permits in use", "lock?name=rates": "",
		"lock?name=stock%3Aleft": "It is in a deadlock", "lock?name=billing%3Arun": "dead", "lock?name=nightly-report": "dead",
		"unlock?name=" + url.QueryEscape(hostile[1]): "Force unlock", "unlock?name=billing%3Arun": "Force unlock", "unlock?name=free": "Force unlock",
		"evict-all-dead?name=billing%3Arun": "5 dead waiters", "?q=orders%3A*": "orders:, the last 5 minutes",
		"evict?name=billing%3Arun&owner=NzFiOTZjZTgtMjc0Ni00YjBlLTlkNWYtM2Y2ZjBiOGYzYTExOjE": "Evict a waiter",
	} {
		b.visit(t, address+path, 1280, "light")
		b.awaits(t, text)
		readable(t, b, path)
	}
	for _, name := range hostile {
		b.visit(t, address+"lock?name="+url.QueryEscape(name), 1280, "light")
		readable(t, b, name)
	}
	b.visit(t, serve(t, s, redlatchui.Options{Pattern: "orders:*" + strings.Repeat("*", 30)}, nil), 1280, "light")
	readable(t, b, "a long pattern")
	for _, c := range b.complained() {
		require.Contains(t, c, "400", "the page without a lock") // the browser reports the status
	}
}

// A live client holds a lock, and the first of two waiters is dead. The page for the lock alone says which client holds
// it, since when, which waiter is next, that it is dead, and why.
func pageFollowsLock(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	client, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithLabel("billing@host-3 pid 812"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	const name = "billing:run"
	dead := other + ":41"
	b := open(t, in)
	b.visit(t, serve(t, s, redlatchui.Options{}, nil)+"lock?name="+url.QueryEscape(name), 1280, "light")
	b.awaits(t, "It is free, and no client is queued.")
	mark(t, b)
	hold, err := rfairlock.New(client, name).Lock(t.Context(), rlock.WithWatchdog(12*time.Second))
	require.NoError(t, err)
	enqueue(t, s, name, dead)
	enqueue(t, s, name, java+":1")
	listen(t, s, name, java+":1")
	b.awaits(t, "Queue (2)")
	b.awaits(t, "2 alive "+java+":1")
	b.awaits(t, "The lease is renewed")
	text := strings.Join(strings.Fields(eval[string](t, b, "document.getElementById('live').innerText")), " ")
	require.Regexp(t, `billing@host-3 pid 812 \(Redlatch [0-9a-f]{8}:\d+\) holds it\. The lease is renewed, so the client is alive\. `+
		`The first in the queue, Redisson 6f5d2c44:41, is dead and will block the queue until its deadline, in \d+ min\. The command redlatch evict removes it\.`, text)
	require.Regexp(t, `Held by billing@host-3 pid 812 Redlatch .* Held since \d\d:\d\d:\d\d UTC, for .* 1 dead `+dead, text)
	require.NoError(t, hold.Unlock())
	s.Do(t, "DEL", codec.QueueKey(name), codec.TimeoutKey(name))
	b.awaits(t, "It is free, and no client is queued.")
	b.awaits(t, "Released by billing@host-3")
	updated(t, b)
}

// withFields adds input fields and a collapsible part to the part of the page that is updated.
func withFields(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			page.ServeHTTP(w, r)
			return
		}
		got := httptest.NewRecorder()
		page.ServeHTTP(got, r)
		for name, values := range got.Header() {
			w.Header()[name] = values
		}
		const begin = `<main id="live">`
		_, _ = w.Write(bytes.Replace(got.Body.Bytes(), []byte(begin), []byte(begin+`<details id="more"><summary>more</summary>more text</details>
<label>Note <input id="note" value="as served"></label> <label><input type="checkbox" id="box"> Box</label>
<label>Text <textarea id="text"></textarea></label>`), 1))
	})
}

func updateKeepsInput(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	for i, name := range []string{"a", "b", "c", "d"} {
		s.Do(t, "HSET", name, fmt.Sprint(ours, ":", i+1), 1)
		s.Do(t, "PEXPIRE", name, time.Hour.Milliseconds())
	}
	const first = `document.querySelector("tbody th a")?.innerText` // the name in the first row
	b := open(t, in)
	b.visit(t, serve(t, s, redlatchui.Options{}, withFields)+"?sort=queue", 1280, "light")
	b.awaits(t, "d plain")
	mark(t, b)
	b.run(t, chromedp.Click("#more summary", chromedp.ByQuery), chromedp.Click("#box", chromedp.ByQuery),
		chromedp.SendKeys("#text", "long text", chromedp.ByQuery), chromedp.SendKeys("#note", "typed: ", chromedp.ByQuery))
	eval[bool](t, b, `(document.getElementById("note").setSelectionRange(2, 9), true)`)
	enqueue(t, s, "d", java+":1")
	b.awaits(t, "d fair")
	b.holds(t, first+` === "d"`)
	require.Equal(t, "note typed: as served 2 9 long text true true", eval[string](t, b, `[document.activeElement.id,
		document.activeElement.value, document.activeElement.selectionStart, document.activeElement.selectionEnd,
		document.getElementById("text").value, document.getElementById("box").checked, document.getElementById("more").open].join(" ")`))

	// Text is selected in a row that moves and in rows around it.
	eval[bool](t, b, `(getSelection().selectAllChildren([...document.querySelectorAll("th bdi")].find((n) => n.innerText === "c")), true)`)
	for i, name := range []string{"c", "b"} {
		for range i + 2 {
			enqueue(t, s, name, java+":2")
		}
		b.holds(t, first+` === "`+name+`"`)
		require.Equal(t, "c", eval[string](t, b, "getSelection().toString()"))
	}

	// The focus is on the link in a row that moves up and then down. The Enter key follows the link.
	eval[bool](t, b, `([...document.querySelectorAll("th a")].find((n) => n.innerText === "a").focus(), true)`)
	for range 4 {
		enqueue(t, s, "a", java+":4")
	}
	b.holds(t, first+` === "a"`)
	require.Equal(t, "a", eval[string](t, b, "document.activeElement.innerText"))
	s.Do(t, "DEL", codec.QueueKey("a"))
	b.holds(t, first+` === "b"`)
	require.Equal(t, "a", eval[string](t, b, "document.activeElement.innerText"))
	updated(t, b)
	b.run(t, chromedp.KeyEvent(kb.Enter))
	b.awaits(t, "Redlatch 00000001:1 holds it")
}

// spoken collects a screen reader's output: the changes in live regions.
const spoken = `(() => {
	window.spoken = [];
	const live = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest("[role=status], [role=alert], [role=log], [aria-live]");
	new MutationObserver((all) => {
		for (const m of all) {
			for (const node of m.type === "childList" ? m.addedNodes : [m.target]) {
				if (live(node)) window.spoken.push(node.textContent.trim());
			}
		}
	}).observe(document.body, { subtree: true, childList: true, characterData: true });
	return true;
})()`

func screenReaderGetsEvents(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", java+":1", 1)
	s.Do(t, "PEXPIRE", "job", 600_000)
	enqueue(t, s, "job", java+":2")
	b := open(t, in)
	b.visit(t, serve(t, s, redlatchui.Options{}, nil)+"lock?name=job", 1280, "light")
	b.awaits(t, "is dead")
	b.says(t, "live")
	eval[bool](t, b, spoken)
	const summary = `document.querySelector(".summary").innerText`
	for range 3 { // the times on the page change
		b.holds(t, fmt.Sprintf(`%s !== %q`, summary, eval[string](t, b, summary)))
	}
	require.Empty(t, eval[[]string](t, b, "window.spoken"))
	// A single command makes sure that the page never finds the lock free.
	s.Do(t, "EVAL", "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], ARGV[1], 1)", 1, "job", ours+":1")
	b.awaits(t, "Redlatch 00000001:1 holds it")
	said := eval[[]string](t, b, "window.spoken")
	require.Len(t, said, 1, "%v", said)
	require.Regexp(t, "^[0-9:.]+ .*Redlatch 00000001:1", said[0])
}

// hurry makes timers a hundred times as fast, and records the pending ones.
const hurry = `(() => {
	const begin = setTimeout, end = clearTimeout;
	window.pending = new Set();
	window.setTimeout = (f, ms) => {
		const id = begin(() => { pending.delete(id); f(); }, ms / 100);
		pending.add(id);
		return id;
	};
	window.clearTimeout = (id) => { pending.delete(id); end(id); };
})()`

// If a stream is refused, for example because there are too many, it is retried. Until then, the page is loaded again.
func refusedStreamIsRetried(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	var refused, status atomic.Int32
	status.Store(http.StatusServiceUnavailable)
	address := serve(t, s, redlatchui.Options{}, func(page http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code := int(status.Load()); code != 0 && (r.URL.Path == "/events" || code == http.StatusUnauthorized) {
				refused.Add(1)
				w.WriteHeader(code)
				return
			}
			page.ServeHTTP(w, r)
		})
	})
	b := open(t, in)
	b.run(t, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(hurry).Do(ctx)
		return err
	}))
	b.visit(t, address, 1280, "light")
	b.says(t, "every 15 s")
	s.Do(t, "HSET", "first", ours+":1", 1)
	b.awaits(t, "first plain")
	require.Greater(t, refused.Load(), int32(1))
	status.Store(0)
	b.says(t, "live")
	s.Do(t, "HSET", "second", ours+":1", 1)
	b.awaits(t, "second plain")

	// The server might count retries as attempts with a wrong password.
	status.Store(http.StatusUnauthorized)
	refused.Store(0)
	s.Do(t, "HSET", "third", ours+":1", 1)
	b.says(t, "refused: load the page again")
	require.Zero(t, eval[int](t, b, "pending.size"), "it is retried")
	require.EqualValues(t, 1, refused.Load())
}

func reloadsWithoutJavaScript(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	s.Do(t, "HSET", "first", ours+":1", 1)
	b := open(t, in)
	b.run(t, emulation.SetScriptExecutionDisabled(true))
	b.visit(t, serve(t, s, redlatchui.Options{}, nil), 390, "light")
	b.run(t, chromedp.WaitVisible(`a[href="lock?name=first"]`, chromedp.ByQuery))
	s.Do(t, "HSET", "second", ours+":1", 1)
	b.run(t, chromedp.WaitVisible(`a[href="lock?name=second"]`, chromedp.ByQuery), // after five seconds
		chromedp.SendKeys(`input[name="q"]`, "first"+kb.Enter, chromedp.ByQuery),
		chromedp.WaitNotPresent(`a[href="lock?name=second"]`, chromedp.ByQuery),
		chromedp.Click(`a[href="lock?name=first"]`, chromedp.ByQuery), chromedp.WaitVisible(".why", chromedp.ByQuery))
	require.Empty(t, b.complained())
}
