// Package browser tries the live page in a real browser, Debian's chromium. Without one its
// tests are skipped, and fail where CI=true.
package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/redlatchui"
)

// atMost bounds what is waited for. It is no claim about speed.
const atMost = 60 * time.Second

// left is what the browser says to a question that it had not answered when its page was left.
const left = "Inspected target navigated or closed"

// foreign is a host that the browser takes for this machine, as after DNS rebinding.
const foreign = "evil.example"

func TestMain(m *testing.M) {
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/chromedp/chromedp.(*ExecAllocator).Allocate.func2"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).watchCtx"),
	)
}

// program returns the path of the browser.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "THE PAGE WAS NOT TRIED IN A BROWSER: there is no chromium (apt-get install chromium)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// browser starts a browser that ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program(t)),
		chromedp.NoSandbox, // tests may run as root
		chromedp.Flag("host-resolver-rules", "MAP "+foreign+" 127.0.0.1"),
		chromedp.WSURLReadTimeout(atMost),
	)
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		stop()
		end()
	})
	require.NoError(t, chromedp.Run(ctx), "the browser starts")
	return ctx
}

// tab is a tab of a browser, and what it has complained of.
type tab struct {
	context.Context

	mu         sync.Mutex
	complaints []string
}

// open opens a tab that ends with the test.
func open(t *testing.T, in context.Context) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(in)
	t.Cleanup(end)
	b := &tab{Context: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded: // also what breaks the content-security policy
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				b.complain(fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
			}
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			b.complain("console." + e.Type.String())
		case *page.EventJavascriptDialogOpening:
			b.complain("dialog: " + e.Message)
		}
	})
	// Without a bound of its own, with which the tab would end, and in front: what is hidden
	// has no stream.
	require.NoError(t, chromedp.Run(ctx, log.Enable(), page.BringToFront(), emulation.SetFocusEmulationEnabled(true)))
	return b
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

// complained returns what the tab has complained of until now.
func (b *tab) complained() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.complaints...)
}

// run runs actions, which must come to an end.
func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	b.runFor(t, atMost, actions...)
}

// runFor is run with a bound of its own.
func (b *tab) runFor(t *testing.T, bound time.Duration, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, bound)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		text := ""
		shown, end := context.WithTimeout(b, time.Second)
		defer end()
		_ = chromedp.Run(shown, chromedp.Evaluate("document.body.innerText", &text))
		require.NoError(t, err, "%s\n%v", text, b.complained())
	}
}

// visit opens an address in a window of a width and a theme, and waits for its content.
func (b *tab) visit(t *testing.T, address string, width int64, theme string) {
	t.Helper()
	b.run(t, windowOf(width, theme), chromedp.Navigate(address), chromedp.WaitVisible("#live h1", chromedp.ByQuery))
}

// windowOf makes the window of a tab as wide as it says, with a theme.
func windowOf(width int64, theme string) chromedp.Action {
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
	}
}

// awaits waits until the page says something.
func (b *tab) awaits(t *testing.T, text string) {
	t.Helper()
	b.awaitsFor(t, text, atMost)
}

// awaitsFor is awaits with a bound of its own. The page may change meanwhile: what is asked of a
// page that is being left is asked of the next one.
func (b *tab) awaitsFor(t *testing.T, text string, bound time.Duration) {
	t.Helper()
	b.runFor(t, bound, chromedp.ActionFunc(func(ctx context.Context) error {
		for said := false; !said; {
			err := chromedp.Evaluate(fmt.Sprintf("document.getElementById('live')?.innerText.replace(/\\s+/g, ' ').includes(%q) || false", text), &said).Do(ctx)
			if err != nil && !strings.Contains(err.Error(), left) {
				return err
			}
			if err := chromedp.Sleep(20 * time.Millisecond).Do(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
}

// eval returns what an expression is in the page.
func eval[T any](t *testing.T, b *tab, expression string) (value T) {
	t.Helper()
	b.run(t, chromedp.Evaluate(expression, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return value
}

// serve serves the page of a server as redlatch ui does, and returns its address.
func serve(t *testing.T, s *redistest.Server) string {
	t.Helper()
	return serveWith(t, s, redlatchui.Options{})
}

// serveWith is serve with options.
func serveWith(t *testing.T, s *redistest.Server, o redlatchui.Options) string {
	t.Helper()
	return serveThrough(t, s, o, func(page http.Handler) http.Handler { return page })
}

// serveThrough is serveWith with a handler before the page.
func serveThrough(t *testing.T, s *redistest.Server, o redlatchui.Options, before func(page http.Handler) http.Handler) string {
	t.Helper()
	o.Every = 200 * time.Millisecond
	srv, err := connect.New(connect.Settings{Address: s.URL()})
	require.NoError(t, err)
	client, err := srv.Open(t.Context(), redlatch.WithServerTime())
	require.NoError(t, err)
	p, err := redlatchui.New(client, o)
	require.NoError(t, err)
	web := httptest.NewServer(before(p))
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, client.Close())
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/"
}

// port returns the part of an address from the colon of its port on.
func port(address string) string { return address[strings.LastIndex(address, ":"):] }
