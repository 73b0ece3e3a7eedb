package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// audit contains the attempts since it was last read.
type audit struct {
	mu  sync.Mutex
	all []string
}

func (a *audit) add(_ context.Context, what redlatchui.Attempt) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, fmt.Sprintf("%s %s: %s", what.Action, what.Outcome, what.Reason))
	return nil
}

func (a *audit) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

// serveActions serves the page with all actions allowed for everyone.
func serveActions(t *testing.T, s *redistest.Server) (address string, told *audit) {
	t.Helper()
	told = &audit{}
	return serve(t, s, redlatchui.Options{
		Hosts: []string{foreign + ".allowed"}, Access: func(*http.Request) redlatchui.Access { return redlatchui.FullAccess }, Audit: told.add,
	}, nil), told
}

// stuck creates a lock with a dead holder, and a dead waiter at the head of its queue.
func stuck(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	s.Do(t, "HSET", name, ours+":7", 1)
	s.Do(t, "SET", "redlatch:label:"+ours, "billing@host-3 pid 812")
	enqueue(t, s, name, java+":77")
}

func actionsWork(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	address, told := serveActions(t, s)
	for _, scripts := range []bool{true, false} {
		stuck(t, s, "billing")
		b := open(t, in)
		b.run(t, emulation.SetScriptExecutionDisabled(!scripts))
		b.visit(t, address+"lock?name=billing", 1280, "light")
		b.clicks(t, "a", "Force unlock")
		b.sees(t, "h1", "Force unlock billing")
		b.clicks(t, "button", "Release the lock") // the browser requires the missing fields
		b.run(t, chromedp.Click(`input[name="dead"]`, chromedp.ByQuery))
		b.clicks(t, "button", "Release the lock")
		require.Empty(t, told.take(), "nothing was sent")
		b.run(t, chromedp.SendKeys(`input[name="reason"]`, "host is gone", chromedp.ByQuery))
		b.clicks(t, "button", "Release the lock")
		b.sees(t, "h1", "Done: billing")
		b.sees(t, "p", "The lock was released for billing@host-3 pid 812 (Redlatch 00000001:7).")
		b.sees(t, "p", "If it is dead, the page of the lock offers to evict it.")
		require.EqualValues(t, 0, s.Do(t, "EXISTS", "billing"))
		if scripts {
			readable(t, b, "done")
		}

		enqueue(t, s, "billing", java+":78")
		enqueue(t, s, "billing", java+":79")
		b.clicks(t, "a", "Current state of the lock")
		b.sees(t, "a", "Evict all 3 dead") // after the waiters have been checked twice
		b.clicks(t, "a", "Evict it")
		b.sees(t, "h1", "Evict a waiter from the queue of billing")
		b.run(t, chromedp.SendKeys(`input[name="reason"]`, "pod was deleted", chromedp.ByQuery))
		b.clicks(t, "button", "Evict the waiter")
		b.sees(t, "h1", "Done: billing")
		require.EqualValues(t, 2, s.Do(t, "LLEN", codec.QueueKey("billing")))
		b.clicks(t, "a", "Current state of the lock")
		b.sees(t, "a", "Evict all 2 dead")
		b.clicks(t, "a", "Evict all 2 dead")
		b.sees(t, "h1", "Evict all dead waiters from the queue of billing")
		b.run(t, chromedp.SendKeys(`input[name="reason"]`, "host was replaced", chromedp.ByQuery))
		b.clicks(t, "button", "Evict all dead waiters")
		b.sees(t, "p", "2 waiters were evicted from the queue.")
		require.EqualValues(t, 0, s.Do(t, "LLEN", codec.QueueKey("billing")))
		b.clicks(t, "a", "Current state of the lock")
		b.sees(t, "p", "It is free, and no client is queued.")
		require.Equal(t, []string{
			"unlock begun: host is gone", "unlock done: host is gone", "evict begun: pod was deleted", "evict done: pod was deleted",
			"evict-all-dead begun: host was replaced", "evict-all-dead done: host was replaced",
		}, told.take())
		require.Empty(t, b.complained(), "scripts: %v", scripts)
	}
}

// attempts is a script for a page on another site. It makes requests, and returns true for each one that succeeded.
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

// otherSitesGetNothing tries pages on another site, on another port, and after DNS rebinding. The last has the same
// origin as the page except for the host name. A browser sends cookies and passwords with the forms of all sites.
func otherSitesGetNothing(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	address, told := serveActions(t, s)
	stuck(t, s, "billing")
	port := func(address string) string { return address[strings.LastIndex(address, ":"):] }
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>other</title><link rel=icon href=data:,><h1>other</h1>
<form method="post" action="%sunlock?name=billing"><input name="holder" value="%s"><input name="dead" value="%[2]s"><input name="reason" value="none"><button>a game</button></form>`,
			address, ours+":7")
	}))
	defer site.Close()
	for _, url := range []string{"http://" + foreign + port(site.URL) + "/", site.URL + "/"} {
		b := open(t, in)
		b.run(t, chromedp.Navigate(url), chromedp.WaitVisible("h1", chromedp.ByQuery))
		got := eval[map[string]any](t, b, attempts+fmt.Sprintf("(%q)", address))
		require.Equal(t, map[string]any{"read": false, "blind": false, "picture": false, "script": false, "stream": false, "frame": false}, got, url)
		b.clicks(t, "button", "a game")
		b.sees(t, "body", "Cross-site form submissions are rejected")
	}
	b := open(t, in)
	b.run(t, chromedp.Navigate("http://"+foreign+port(address)))
	require.Contains(t, eval[string](t, b, "document.body.innerText"), "not served under that host name")
	for _, path := range []string{"", "lock?name=billing", "events", "static/page.js"} {
		require.InDelta(t, 421, eval[float64](t, b, fmt.Sprintf("fetch(%q).then((r) => r.status)", "/"+path)), 0, path)
	}
	require.InDelta(t, 421, eval[float64](t, b, `fetch("/unlock?name=billing", {method: "POST", body: new URLSearchParams({reason: "none"})}).then((r) => r.status)`), 0)
	require.Zero(t, s.CommandStats(t)["scan"], "the server was asked")
	require.Empty(t, told.take())

	// Without TLS, the page on another machine is not a secure context, and browsers only send Origin. It works because
	// the host is allowed.
	b.visit(t, "http://"+foreign+".allowed"+port(address)+"/unlock?name=billing", 1280, "light")
	b.run(t, chromedp.Click(`input[name="dead"]`, chromedp.ByQuery), chromedp.SendKeys(`input[name="reason"]`, "host is gone", chromedp.ByQuery))
	b.clicks(t, "button", "Release the lock")
	b.sees(t, "h1", "Done: billing")
	require.Len(t, told.take(), 2)
}
