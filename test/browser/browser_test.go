// Package browser tries the live page in a real browser, Debian's chromium. Without one its
// tests are skipped, and fail where CI=true.
package browser

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rlock"
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

// The README has two commands that lead to a page with the locks of a live Redisson and of
// Redlatch: one installs the command line, the other one serves the page. The first is done with
// this checkout, and the second at a free port.
func TestTheREADMELeadsToThePageInTwoCommands(t *testing.T) {
	t.Parallel()
	in := browser(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	const install, show = "go install github.com/redlatch/redlatch/cmd/redlatch@latest", "redlatch ui"
	require.Contains(t, string(readme), "\n    "+install+"\n")
	require.Contains(t, string(readme), "\n    "+show+" ")

	s := redistest.Start(t)
	_, err = javaClient(t, s)(peer.Command{"op": "lock", "kind": "plain", "name": "nightly-report"}).Wait(atMost)
	require.NoError(t, err)
	hold, err := rlock.New(goClient(t, s, "orders@host-3"), "orders:42").Lock(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, hold.Unlock()) }()

	program := filepath.Join(t.TempDir(), "redlatch")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/redlatch")
	build.Dir = root
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	serves := exec.CommandContext(t.Context(), program, append(strings.Fields(show)[1:], "--addr", "127.0.0.1:0")...)
	serves.Env = append(os.Environ(), "REDIS_URL="+s.URL())
	out, err := serves.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serves.Start())
	defer func() {
		require.NoError(t, serves.Process.Signal(os.Interrupt))
		_ = serves.Wait() // 130
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	b := open(t, in)
	b.visit(t, strings.TrimSpace(address), 1280, "light")
	b.awaits(t, "2 locks")
	b.awaits(t, "nightly-report plain Redisson ")
	b.awaits(t, "orders:42 plain orders@host-3 (Redlatch ")
	keep(t, b, "walk")
	require.Empty(t, b.complained())
}

// keep writes a picture of the window to the folder REDLATCH_PICTURES, if there is one.
func keep(t *testing.T, b *tab, name string) {
	t.Helper()
	folder := os.Getenv("REDLATCH_PICTURES")
	if folder == "" {
		return
	}
	var picture []byte
	b.run(t, chromedp.Sleep(1500*time.Millisecond), chromedp.CaptureScreenshot(&picture))
	require.NoError(t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600))
}

// keepForPage writes a small picture of what is in the window, without what is empty below, to the
// file REDLATCH_PICTURE, if it is named: it is the one of docs/ui.md.
func keepForPage(t *testing.T, b *tab) {
	t.Helper()
	file := os.Getenv("REDLATCH_PICTURE")
	if file == "" {
		return
	}
	height := eval[float64](t, b, `document.querySelector("#live > :last-child").getBoundingClientRect().bottom + 24`)
	width := eval[float64](t, b, "innerWidth")
	var picture []byte
	b.run(t, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithClip(&page.Viewport{Width: width, Height: height, Scale: 1}).Do(ctx)
		return err
	}))
	require.NoError(t, os.WriteFile(file, small(t, picture), 0o644))
}

// small makes a picture smaller: of its colours the 256 that are used most are left.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	used := map[color.Color]int{}
	bounds := from.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			used[from.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(used), func(a, b color.Color) int { return cmp.Compare(used[b], used[a]) })
	to := image.NewPaletted(bounds, colours[:min(len(colours), 256)])
	nearest := map[color.Color]uint8{}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			c := from.At(x, y)
			if _, known := nearest[c]; !known {
				nearest[c] = uint8(to.Palette.Index(c))
			}
			to.SetColorIndex(x, y, nearest[c])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	t.Logf("%d bytes, of %d with %d colours", out.Len(), len(picture), len(used))
	return out.Bytes()
}
