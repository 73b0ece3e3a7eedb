package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// told is what an audit was told.
type told struct {
	mu  sync.Mutex
	all []string
}

func (l *told) add(_ context.Context, a redlatchui.Attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf("%s %s: %s", a.Action, a.Outcome, a.Reason))
	return nil
}

func (l *told) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

// serveActions serves the page with all actions to all that reach it.
func serveActions(t *testing.T, s *redistest.Server, hosts ...string) (string, *told) {
	t.Helper()
	l := &told{}
	return serveWith(t, s, redlatchui.Options{
		Hosts: hosts, Access: func(*http.Request) redlatchui.Access { return redlatchui.FullAccess }, Audit: l.add,
	}), l
}

// sees waits until a part of the page with the text is there, also without JavaScript.
func (b *tab) sees(t *testing.T, element, text string) {
	t.Helper()
	b.run(t, chromedp.WaitVisible(fmt.Sprintf(`//%s[contains(., %q)]`, element, text), chromedp.BySearch))
}

// clicks follows a link or sends a form.
func (b *tab) clicks(t *testing.T, element, text string) {
	t.Helper()
	b.run(t, chromedp.Click(fmt.Sprintf(`//%s[contains(., %q)]`, element, text), chromedp.BySearch))
}

// canBeRead looks at the page that a tab shows in both widths and themes.
func canBeRead(t *testing.T, b *tab, what string) {
	t.Helper()
	for _, width := range []int64{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			b.run(t, windowOf(width, theme))
			require.Empty(t, eval[[]string](t, b, flaws), "%s %d %s", what, width, theme)
			keep(t, b, fmt.Sprintf("%s-%d-%s", what, width, theme))
		}
	}
}

// stuck makes a lock whose holder is gone, and which a dead waiter blocks afterwards.
func stuck(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	s.Do(t, "HSET", name, ours+":7", 1)
	s.Do(t, "SET", "redlatch:label:"+ours, "billing@host-3 pid 812")
	s.Do(t, "RPUSH", codec.QueueKey(name), java+":77")
	s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(time.Hour).UnixMilli(), java+":77")
}

func TestEachActionIsDoneWithAndWithoutJavaScript(t *testing.T) {
	in := browser(t)
	s := redistest.Start(t)
	for _, scripts := range []bool{true, false} {
		address, audit := serveActions(t, s)
		stuck(t, s, "billing")
		b := open(t, in)
		b.run(t, emulation.SetScriptExecutionDisabled(!scripts))
		b.visit(t, address+"lock?name=billing", 1280, "light")
		b.clicks(t, "a", "Force unlock")
		b.sees(t, "h1", "Force unlock billing")
		b.clicks(t, "button", "Take the lock away") // the browser asks for what is missing
		b.run(t, chromedp.Click(`input[name="dead"]`, chromedp.ByQuery))
		b.clicks(t, "button", "Take the lock away")
		require.Empty(t, audit.lines(), "nothing was sent")
		b.run(t, chromedp.SendKeys(`input[name="reason"]`, "host is gone", chromedp.ByQuery))
		b.clicks(t, "button", "Take the lock away")
		b.sees(t, "h1", "Done: billing")
		b.sees(t, "p", "The lock was taken from billing@host-3 pid 812 (Redlatch 00000001:7).")
		b.sees(t, "p", "If it is dead, the page of the lock offers to evict it.")
		require.EqualValues(t, 0, s.Do(t, "EXISTS", "billing"))
		if scripts {
			canBeRead(t, b, "action-done")
		}

		b.clicks(t, "a", "The lock as it is now")
		b.sees(t, "span", "dead") // after a second look
		b.clicks(t, "a", "Evict")
		b.sees(t, "h1", "Evict a waiter from the queue of billing")
		b.run(t, chromedp.SendKeys(`input[name="reason"]`, "pod was deleted", chromedp.ByQuery))
		b.clicks(t, "button", "Evict the waiter")
		b.sees(t, "h1", "Done: billing")
		require.EqualValues(t, 0, s.Do(t, "LLEN", codec.QueueKey("billing")))
		b.clicks(t, "a", "The lock as it is now")
		b.sees(t, "p", "It is free, and no client is queued for it.")
		require.Equal(t, []string{
			"unlock begun: host is gone", "unlock done: host is gone", "evict begun: pod was deleted", "evict done: pod was deleted",
		}, audit.lines())
		require.Empty(t, b.complained(), "scripts: %v", scripts)
	}
}

func TestTheFormsOfActionsCanBeReadAndHaveLabels(t *testing.T) {
	in := browser(t)
	s := redistest.Start(t)
	address, _ := serveActions(t, s)
	stuck(t, s, "billing")
	stuck(t, s, hostile[1])
	b := open(t, in)
	b.visit(t, address+"lock?name=billing", 1280, "light")
	b.awaits(t, "dead")
	evict := eval[string](t, b, `document.querySelector('td a').getAttribute("href")`)
	for what, path := range map[string]string{
		"offered": "lock?name=billing", "unlock": "unlock?name=billing", "evict": evict, "hostile": "unlock?name=%22%3E%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E",
		"free": "unlock?name=free",
	} {
		for _, width := range []int64{1280, 390} {
			for _, theme := range []string{"light", "dark"} {
				b.visit(t, address+path, width, theme)
				require.Empty(t, eval[[]string](t, b, flaws), "%s %d %s", what, width, theme)
				keep(t, b, fmt.Sprintf("action-%s-%d-%s", what, width, theme))
			}
		}
	}
	require.Empty(t, b.complained())
}

func TestALockThatChangesHandsBeforeTheFormIsSentIsLeftAlone(t *testing.T) {
	in := browser(t)
	s := redistest.Start(t)
	address, audit := serveActions(t, s)
	stuck(t, s, "billing")
	b := open(t, in)
	b.visit(t, address+"unlock?name=billing", 1280, "light")
	s.Do(t, "DEL", "billing")
	s.Do(t, "HSET", "billing", java+":1", 1)
	b.run(t, chromedp.Click(`input[name="dead"]`, chromedp.ByQuery), chromedp.SendKeys(`input[name="reason"]`, "host is gone", chromedp.ByQuery))
	b.clicks(t, "button", "Take the lock away")
	b.sees(t, "p", `is no longer held as it was shown, and was not taken.`)
	require.EqualValues(t, 1, s.Do(t, "EXISTS", "billing"))
	require.Equal(t, []string{"unlock begun: host is gone", "unlock refused: host is gone"}, audit.lines())
	for _, c := range b.complained() {
		require.Contains(t, c, "409") // the browser reports the status
	}
}

// A page beyond this machine without TLS is no secure context: browsers do not say which site a
// form comes from but in Origin.
func TestActionsWorkWithoutTLSByTheNameOfAHost(t *testing.T) {
	in := browser(t)
	s := redistest.Start(t)
	address, _ := serveActions(t, s, foreign)
	stuck(t, s, "billing")
	b := open(t, in)
	b.visit(t, "http://"+foreign+port(address)+"unlock?name=billing", 1280, "light")
	b.run(t, chromedp.Click(`input[name="dead"]`, chromedp.ByQuery), chromedp.SendKeys(`input[name="reason"]`, "host is gone", chromedp.ByQuery))
	b.clicks(t, "button", "Take the lock away")
	b.sees(t, "h1", "Done: billing")
}

// A browser sends what it knows of a user with the forms of all sites.
func TestFormsOnOtherSitesDoNothing(t *testing.T) {
	in := browser(t)
	s := redistest.Start(t)
	address, audit := serveActions(t, s)
	stuck(t, s, "billing")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>other</title><link rel=icon href=data:,><h1>other</h1>
<form method="post" action="%sunlock?name=billing"><input name="holder" value="%s"><input name="dead" value="%[2]s"><input name="reason" value="none"><button>a game</button></form>`,
			address, ours+":7")
	}))
	defer other.Close()
	for what, site := range map[string]string{
		"another site": "http://" + foreign + port(other.URL) + "/", "another port": other.URL + "/",
		"after rebinding": "http://" + foreign + port(address),
	} {
		b := open(t, in)
		b.run(t, chromedp.Navigate(site))
		if strings.HasPrefix(what, "another") {
			b.clicks(t, "button", "a game")
			b.sees(t, "body", "Forms of other sites' pages do nothing here")
		} else {
			status := eval[float64](t, b, `fetch("unlock?name=billing", {method: "POST", body: new URLSearchParams({reason: "none"})}).then((r) => r.status)`)
			require.InDelta(t, 421, status, 0)
		}
		require.EqualValues(t, 1, s.Do(t, "EXISTS", "billing"), what)
	}
	require.Empty(t, audit.lines())
}

// attempts are what a page of another site may try; each is true when it got something.
const attempts = `(async (page) => {
	const get = (mode) => fetch(page, { mode, cache: "no-store" }).then((r) => (r.type === "opaque" ? "opaque" : r.text()), () => false);
	const load = (tag, address, set) => new Promise((done) => {
		const node = document.createElement(tag);
		node.onload = () => done(true);
		node.onerror = () => done(false);
		node[set] = address;
		document.body.append(node);
	});
	const stream = new Promise((done) => {
		const s = new EventSource(page + "events");
		s.addEventListener("change", () => done(true));
		s.onerror = () => { s.close(); done(false); };
	});
	const frame = document.createElement("iframe");
	frame.src = page;
	document.body.append(frame);
	await new Promise((done) => { frame.onload = done; });
	let inside = false;
	try { inside = frame.contentDocument !== null && frame.contentDocument.body.innerText !== ""; } catch { inside = false; }
	return {
		read: await get("cors"), blind: await get("no-cors"), picture: await load("img", page + "static/icon.svg", "src"),
		script: await load("script", page + "static/page.js", "src"), stream: await stream, frame: inside,
	};
})`

// result is what came of them.
type result struct{ Read, Blind, Picture, Script, Stream, Frame any }

func TestPagesOfOtherSitesGetNothing(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "HSET", "secret", ours+":1", 1)
	address := serve(t, s)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>other</title><link rel=icon href=data:,><h1>other</h1>")
	}))
	defer other.Close()
	for what, site := range map[string]string{
		"another site": "http://" + foreign + port(other.URL) + "/",
		"another port": other.URL + "/",
	} {
		b := open(t, in)
		b.run(t, chromedp.Navigate(site), chromedp.WaitVisible("h1", chromedp.ByQuery))
		got := eval[result](t, b, attempts+fmt.Sprintf("(%q)", address))
		require.Equal(t, result{Read: false, Blind: false, Picture: false, Script: false, Stream: false, Frame: false}, got, what)
	}
	require.Zero(t, s.CommandStats(t)["scan"], "and nothing was asked of the server")
}

// After DNS rebinding the page and the site of the attacker are one origin: only the host's
// name tells them apart.
func TestAHostThatWasPointedHereIsRefused(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "HSET", "secret", ours+":1", 1)
	address := serve(t, s)
	b := open(t, in)
	site := "http://" + foreign + port(address)
	b.run(t, chromedp.Navigate(site))
	require.Contains(t, eval[string](t, b, "document.body.innerText"), "not served under that name")
	for _, path := range []string{"", "lock?name=secret", "events", "static/page.js"} {
		require.InDelta(t, 421, eval[float64](t, b, fmt.Sprintf("fetch(%q).then((r) => r.status)", site+path)), 0, path)
	}
	require.Zero(t, s.CommandStats(t)["scan"])
	b.run(t, chromedp.Navigate(address)) // while the page itself is there
	b.awaits(t, "secret")
}

func TestTenThousandLocksAreShownInUnderASecond(t *testing.T) {
	in := browser(t)
	s := redistest.Start(t)
	s.Do(t, "EVAL", `for i = 1, 10000 do
		local name = 'shop' .. i % 40 .. ':' .. i
		redis.call('HSET', name, ARGV[1] .. ':' .. i, 1)
		redis.call('PEXPIRE', name, 3600000)
	end`, 0, java)
	address := serve(t, s)
	b := open(t, in)
	b.visit(t, address, 1280, "light") // the first scan takes as long as it takes
	b.awaits(t, "10000 locks")
	for path, said := range map[string]string{
		"?q=:9": "1111 of 10000 locks", "?by=prefix": "10000 locks in 40 groups", "who": "1 client holds or waits",
		"who?client=" + java: "Holds (200 and 9800 more)",
	} {
		took := time.Hour
		for try := 0; try < 10 && took >= time.Second; try++ { // a machine that stands still says nothing of the page
			began := time.Now()
			b.visit(t, address+path, 1280, "light")
			b.awaits(t, said)
			took = min(took, time.Since(began))
		}
		t.Logf("10,000 locks: %s: %v, the page has %d bytes", path, took, len(eval[string](t, b, "document.documentElement.outerHTML")))
		require.Less(t, took, time.Second, path)
		require.NotContains(t, eval[string](t, b, "document.getElementById('live').innerText"), "shop1:9000 ")
	}
}
