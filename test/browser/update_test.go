package browser

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// withFields puts fields and a part that opens into what the page updates.
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

// queueFor puts an owner into the queue of a lock, so that it comes before others on the page.
func queueFor(t *testing.T, s *redistest.Server, name, owner string) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(time.Hour).UnixMilli(), owner)
}

// first is the name in the first row.
const first = `document.querySelector("tbody th a").innerText`

func TestWhatAViewerHasOpenedTypedAndSelectedSurvivesAnUpdate(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	for i, name := range []string{"a", "b", "c", "d"} {
		s.Do(t, "HSET", name, fmt.Sprint(ours, ":", i+1), 1)
		s.Do(t, "PEXPIRE", name, time.Hour.Milliseconds())
	}
	b := open(t, in)
	b.visit(t, serveThrough(t, s, redlatchui.Options{}, withFields)+"?sort=queue", 1280, "light")
	b.awaits(t, "d plain")
	mark(t, b)
	b.run(t, chromedp.Click("#more summary", chromedp.ByQuery), chromedp.Click("#box", chromedp.ByQuery), chromedp.SendKeys("#text", "long text", chromedp.ByQuery),
		chromedp.SendKeys("#note", "typed: ", chromedp.ByQuery))
	eval[bool](t, b, `(document.getElementById("note").setSelectionRange(2, 9), true)`)
	queueFor(t, s, "d", java+":1")
	b.awaits(t, "d fair")
	require.Equal(t, "d", eval[string](t, b, first), "it has moved")
	require.Equal(t, "note typed: as served 2 9 long text true true", eval[string](t, b, `[document.activeElement.id,
		document.activeElement.value, document.activeElement.selectionStart, document.activeElement.selectionEnd,
		document.getElementById("text").value, document.getElementById("box").checked, document.getElementById("more").open].join(" ")`))

	// Selected text, in a row that moves and in rows around it.
	eval[bool](t, b, `(getSelection().selectAllChildren([...document.querySelectorAll("th bdi")].find((n) => n.innerText === "c")), true)`)
	for range 2 {
		queueFor(t, s, "c", java+":2")
	}
	b.awaits(t, "c fair")
	b.runFor(t, atMost, chromedp.Poll(first+` === "c"`, nil))
	require.Equal(t, "c", eval[string](t, b, "getSelection().toString()"))
	for range 3 {
		queueFor(t, s, "b", java+":3")
	}
	b.runFor(t, atMost, chromedp.Poll(first+` === "b"`, nil))
	require.Equal(t, "c", eval[string](t, b, "getSelection().toString()"))

	// The focus, on a link of a row that moves up, and of one that moves down.
	eval[bool](t, b, `([...document.querySelectorAll("th a")].find((n) => n.innerText === "a").focus(), true)`)
	for range 4 {
		queueFor(t, s, "a", java+":4")
	}
	b.runFor(t, atMost, chromedp.Poll(first+` === "a"`, nil))
	require.Equal(t, "a", eval[string](t, b, "document.activeElement.innerText"))
	s.Do(t, "DEL", codec.QueueKey("a"))
	b.runFor(t, atMost, chromedp.Poll(first+` === "b"`, nil))
	require.Equal(t, "a", eval[string](t, b, "document.activeElement.innerText"))
	require.True(t, marked(t, b), "the page was not loaded anew")
	require.Empty(t, b.complained())
}

// A part of the page itself that opens.
func TestWhatIsOpenedStaysOpen(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	b := open(t, in)
	b.visit(t, serve(t, s)+"who", 390, "dark")
	b.run(t, chromedp.Click("#unseen summary", chromedp.ByQuery))
	b.awaits(t, "which clients took permits")
	s.Do(t, "HSET", "a", ours+":1", 1)
	b.awaits(t, "1 client holds or waits")
	require.True(t, eval[bool](t, b, `document.getElementById("unseen").open`))
}

// Owners that differ in bytes which are shown alike have rows of their own.
func TestOwnersThatAreShownAlikeAreTwoRows(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	owners := []string{"a\x1b", "a\x1c", "a\xff", "a\xfe", `"><i>`, java + ":1", java + ":1"}
	s.Do(t, "HSET", "job", ours+":1", 1)
	for _, owner := range owners[:4] {
		queueFor(t, s, "job", owner)
	}
	b := open(t, in)
	b.visit(t, serve(t, s)+"lock?name=job", 1280, "light")
	b.awaits(t, "Queue (4)")
	mark(t, b)
	for i, owner := range owners[4:] {
		queueFor(t, s, "job", owner)
		b.awaits(t, fmt.Sprintf("Queue (%d)", i+5))
		require.Equal(t, i+5, eval[int](t, b, `document.querySelectorAll("tbody tr").length`))
		require.Equal(t, i+5, eval[int](t, b, `new Set([...document.querySelectorAll("tbody tr")].map((r) => r.id)).size`), "each has its id")
	}
	s.Do(t, "LPOP", codec.QueueKey("job"))
	b.awaits(t, "Queue (6)")
	require.Equal(t, 6, eval[int](t, b, `document.querySelectorAll("tbody tr").length`))
	require.Equal(t, "1 2 3 4 5 6", eval[string](t, b, `[...document.querySelectorAll("tbody th")].map((n) => n.innerText).join(" ")`))
	require.True(t, marked(t, b), "the page was not loaded anew")
	require.Empty(t, b.complained())
}

// A name that a path could not have is one like others.
func TestLocksWhoseNamesArePathsAreOpened(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	names := []string{".", "..", "../..", "/", "a/../b", "?", "#", "%2e%2e"}
	for _, name := range names {
		s.Do(t, "HSET", name, ours+":1", 1)
	}
	address := serve(t, s)
	b := open(t, in)
	for _, name := range names {
		b.visit(t, address, 1280, "light")
		b.awaits(t, "8 locks")
		eval[bool](t, b, fmt.Sprintf(`([...document.querySelectorAll("th a")].find((n) => n.innerText === %q).click(), true)`, name))
		b.awaits(t, "holds it without a lease")
		require.Equal(t, name, eval[string](t, b, `document.querySelector("h1").innerText`))
	}
	require.Empty(t, b.complained())
}

// A stream that is refused, as when there are too many, is tried again, and the page is loaded
// now and then until it is back.
func TestAPageWhoseStreamIsRefusedFollowsAllTheSame(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	var refused, status atomic.Int32
	status.Store(http.StatusServiceUnavailable)
	address := serveThrough(t, s, redlatchui.Options{}, func(page http.Handler) http.Handler {
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
	b.visit(t, address, 1280, "light")
	b.says(t, "every 15 s")
	require.EqualValues(t, 1, refused.Load())
	s.Do(t, "HSET", "first", ours+":1", 1)
	b.awaitsFor(t, "first plain", 2*atMost)
	require.EqualValues(t, 2, refused.Load())
	status.Store(0)
	b.says(t, "live")
	s.Do(t, "HSET", "second", ours+":1", 1)
	b.awaits(t, "second plain")

	// What may count as a wrong password is not tried again.
	status.Store(http.StatusUnauthorized)
	refused.Store(0)
	s.Do(t, "HSET", "third", ours+":1", 1)
	b.says(t, "refused: load the page again")
	require.EqualValues(t, 1, refused.Load())
	require.Never(t, func() bool { return refused.Load() > 1 }, 18*time.Second, time.Second)
}

// says waits until the page says how it is kept up to date.
func (b *tab) says(t *testing.T, text string) {
	t.Helper()
	b.runFor(t, 2*atMost, chromedp.Poll(fmt.Sprintf(`document.getElementById("link").innerText === %q`, text), nil))
}

// spoken collects what a screen reader is given to say: what changes in live regions.
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

// The times on the page of a lock change each second: a screen reader says what has happened, and
// not that.
func TestAScreenReaderSaysWhatHasHappenedAndNoTimes(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", java+":1", 1)
	s.Do(t, "PEXPIRE", "job", 600_000)
	queueFor(t, s, "job", java+":2")
	b := open(t, in)
	b.visit(t, serve(t, s)+"lock?name=job", 1280, "light")
	b.awaits(t, "is dead")
	b.says(t, "live")
	eval[bool](t, b, spoken)
	seen := eval[string](t, b, `document.querySelector(".summary").innerText`)
	for range 3 {
		b.runFor(t, atMost, chromedp.Poll(fmt.Sprintf(`document.querySelector(".summary").innerText !== %q`, seen), nil))
		seen = eval[string](t, b, `document.querySelector(".summary").innerText`)
	}
	require.Empty(t, eval[[]string](t, b, "window.spoken"))
	// At once: a look between the two would find it free, and say so.
	s.Do(t, "EVAL", "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], ARGV[1], 1)", 1, "job", ours+":1")
	b.awaits(t, "Redlatch 00000001:1 holds it")
	said := eval[[]string](t, b, "window.spoken")
	require.Len(t, said, 1, "%v", said)
	require.Regexp(t, "^[0-9:.]+ .*Redlatch 00000001:1", said[0])
}
