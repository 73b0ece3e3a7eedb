package browser

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

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
