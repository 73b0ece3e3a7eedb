// Package browser tests the live page in Debian's chromium. If it is not installed, the test is skipped, or fails with
// CI=true. The package covers the parts that HTTP tests cannot cover: layout, the script that updates the page, forms
// as a browser sends them, and access from other sites.
package browser

import (
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
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/redlatchui"
)

// atMost is the time limit for each wait. It does not test performance.
const atMost = 60 * time.Second

// left is the browser's error for an expression if another page is opened while it is being evaluated.
const left = "Inspected target navigated or closed"

// foreign is a host name that the browser resolves to this machine, as after DNS rebinding.
const foreign = "evil.example"

const (
	java  = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	other = "9a1f0c0e-52c1-4f6e-8a35-0b7f6f5d2c44"
	ours  = "0193e6c0-6f00-7000-8000-000000000001"
)

func TestMain(m *testing.M) {
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/chromedp/chromedp.(*ExecAllocator).Allocate.func2"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).watchCtx"),
	)
}

// TestPage uses one browser for all scenes.
func TestPage(t *testing.T) {
	t.Parallel()
	in := browser(t)
	for name, scene := range map[string]func(t *testing.T, in context.Context){
		"IsReadable":                        pageIsReadable,
		"FollowsLockAndSaysWhyItIsStuck":    pageFollowsLock,
		"UpdateKeepsInputSelectionAndFocus": updateKeepsInput,
		"ScreenReaderGetsEventsWithoutTime": screenReaderGetsEvents,
		"RefusedStreamIsRetried":            refusedStreamIsRetried,
		"ReloadsWithoutJavaScript":          reloadsWithoutJavaScript,
		"FilterFoldsOnSmallScreen":          filterFolds,
		"ChartsMove":                        chartsMove,
		"ActionsWork":                       actionsWork,
		"OtherSitesGetNothing":              otherSitesGetNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, in)
		})
	}
}

// program returns the path of the browser.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "PAGE NOT TESTED IN A BROWSER: chromium not found (apt-get install chromium)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// browser starts a browser that is stopped when the test ends.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program(t)),
		chromedp.NoSandbox, // tests may run as root
		chromedp.Flag("host-resolver-rules", "MAP *"+foreign+"* 127.0.0.1"),
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

// tab is a tab of a browser, with the errors that the browser reported for it.
type tab struct {
	context.Context

	mu         sync.Mutex
	complaints []string
}

// open opens a tab that is closed when the test ends.
func open(t *testing.T, in context.Context) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(in)
	t.Cleanup(end)
	b := &tab{Context: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded: // also violations of the content-security policy
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
	// There is no timeout, because the tab is closed when its context ends. The tab is brought to the front, because a
	// hidden page does not open a stream.
	require.NoError(t, chromedp.Run(ctx, log.Enable(), page.BringToFront(), emulation.SetFocusEmulationEnabled(true)))
	return b
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

// complained returns the errors that have been reported for the tab.
func (b *tab) complained() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.complaints)
}

// run runs actions, which must end in time.
func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, atMost)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		text := ""
		shown, end := context.WithTimeout(b, time.Second)
		defer end()
		_ = chromedp.Run(shown, chromedp.Evaluate("document.body.innerText", &text))
		require.NoError(t, err, "%s\n%v", text, b.complained())
	}
}

// visit opens an address in a window with a width and a theme, and waits for its content.
func (b *tab) visit(t *testing.T, address string, width int64, theme string) {
	t.Helper()
	b.run(t, windowOf(width, theme), chromedp.Navigate(address), chromedp.WaitVisible("#live h1", chromedp.ByQuery))
}

// windowOf sets the width and the theme of a tab.
func windowOf(width int64, theme string) chromedp.Action {
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
	}
}

// awaits waits until the page, which may change, contains the text.
func (b *tab) awaits(t *testing.T, text string) {
	t.Helper()
	b.holds(t, fmt.Sprintf("document.getElementById('live')?.innerText.replace(/\\s+/g, ' ').includes(%q) || false", text))
}

// says waits until the update status of the page is text.
func (b *tab) says(t *testing.T, text string) {
	t.Helper()
	b.holds(t, fmt.Sprintf(`document.getElementById("link").innerText === %q`, text))
}

// holds waits until an expression is true on this page or the next one.
func (b *tab) holds(t *testing.T, expression string) {
	t.Helper()
	b.run(t, chromedp.ActionFunc(func(ctx context.Context) error {
		for is := false; !is; {
			err := chromedp.Evaluate(expression, &is).Do(ctx)
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

// sees waits until an element with the text appears, even without JavaScript.
func (b *tab) sees(t *testing.T, element, text string) {
	t.Helper()
	b.run(t, chromedp.WaitVisible(fmt.Sprintf(`//%s[contains(., %q)]`, element, text), chromedp.BySearch))
}

// clicks follows a link or sends a form.
func (b *tab) clicks(t *testing.T, element, text string) {
	t.Helper()
	b.run(t, chromedp.Click(fmt.Sprintf(`//%s[contains(., %q)]`, element, text), chromedp.BySearch))
}

// eval returns the value of an expression in the page.
func eval[T any](t *testing.T, b *tab, expression string) (value T) {
	t.Helper()
	b.run(t, chromedp.Evaluate(expression, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return value
}

// mark marks the document. A page that is loaded again is not marked.
func mark(t *testing.T, b *tab) { t.Helper(); eval[bool](t, b, "window.marked = true") }

// updated requires that the script has updated the marked document without errors.
func updated(t *testing.T, b *tab) {
	t.Helper()
	require.True(t, eval[bool](t, b, "window.marked === true"), "the page was loaded again")
	require.Empty(t, b.complained())
}

// serve serves the page for a server as redlatch ui does, and returns its address. If before is not nil, it wraps the
// page.
func serve(t *testing.T, s *redistest.Server, o redlatchui.Options, before func(page http.Handler) http.Handler) string {
	t.Helper()
	o.Every = 200 * time.Millisecond
	srv, err := connect.New(connect.Settings{Address: s.URL()})
	require.NoError(t, err)
	client, err := srv.Open(t.Context(), redlatch.WithServerTime())
	require.NoError(t, err)
	p, err := redlatchui.New(client, o)
	require.NoError(t, err)
	var handler http.Handler = p
	if before != nil {
		handler = before(p)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, client.Close())
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/"
}

// enqueue adds an owner without a subscriber to a lock's queue.
func enqueue(t *testing.T, s *redistest.Server, name, owner string) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(time.Hour).UnixMilli(), owner)
}

// listen subscribes to the channel of a waiter, so that the waiter counts as alive.
func listen(t *testing.T, s *redistest.Server, name, owner string) {
	t.Helper()
	_, err := s.Dial(t).Do("SUBSCRIBE", protocol.OwnerChannel(name, owner))
	require.NoError(t, err)
}

// keepForPage writes a small image of the window for docs/ui.md to the file that REDLATCH_PICTURE names, if it is set.
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

// small reduces a picture to its 256 most frequent colors.
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
	colors := slices.SortedFunc(maps.Keys(used), func(a, b color.Color) int { return cmp.Compare(used[b], used[a]) })
	to := image.NewPaletted(bounds, colors[:min(len(colors), 256)])
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
	return out.Bytes()
}
