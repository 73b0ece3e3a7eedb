package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

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
