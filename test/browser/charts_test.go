package browser

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// On a small screen, the filter is folded until the viewer opens it. Updates leave it as it is.
func filterFolds(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	s.Do(t, "HSET", "first", ours+":1", 1)
	b := open(t, in)
	address := serve(t, s, redlatchui.Options{}, nil)
	const isOpen = `document.querySelector("input[name=q]").checkVisibility({contentVisibilityAuto: true})`
	b.visit(t, address, 1280, "light")
	b.says(t, "live")
	require.True(t, eval[bool](t, b, isOpen))
	require.False(t, eval[bool](t, b, `document.querySelector(".filter summary").checkVisibility()`))
	b.run(t, windowOf(390, "light"))
	b.holds(t, "!"+isOpen)
	b.visit(t, address+"?q=fir", 390, "light")
	b.awaits(t, "first plain")
	require.False(t, eval[bool](t, b, isOpen))
	b.run(t, chromedp.Click(".filter summary", chromedp.ByQuery), chromedp.WaitVisible(`input[name="q"]`, chromedp.ByQuery))
	s.Do(t, "HSET", "firmware", ours+":1", 1)
	b.awaits(t, "firmware plain")
	require.True(t, eval[bool](t, b, isOpen))
	require.Equal(t, "Filter: fir", eval[string](t, b, `document.querySelector(".filter summary").innerText.trim()`))
	require.Empty(t, b.complained())
}

// The charts are drawn again by the script: their newest point moves.
func chartsMove(t *testing.T, in context.Context) {
	t.Helper()
	s := redistest.Start(t)
	b := open(t, in)
	b.visit(t, serve(t, s, redlatchui.Options{}, nil), 1280, "light")
	b.awaits(t, "Locks held 0")
	mark(t, b)
	const area = `document.querySelector(".tile.held .area").getBBox().height`
	require.Less(t, eval[float64](t, b, area), 1.0)
	s.Do(t, "HSET", "first", ours+":1", 1)
	b.awaits(t, "Locks held 1")
	b.awaits(t, "Acquisitions 1")
	require.Greater(t, eval[float64](t, b, area), 10.0)
	updated(t, b)
	if os.Getenv("REDLATCH_PICTURE") != "" {
		s.Do(t, "DEL", "first")
		redistest.InRealTime(t, "the charts of the picture show five minutes", func(testing.TB) { workFor(t, s, 5*time.Minute) })
		keepForPage(t, b)
	}
}

// workFor acquires and releases locks for some time.
func workFor(t *testing.T, s *redistest.Server, d time.Duration) {
	t.Helper()
	owners := []string{ours + ":%d", java + ":%d", other + ":%d"}
	for i, label := range []string{"billing@host-3 pid 812", "orders-7d9f4c6b8-x2x9k pid 1 java", "stock@host-1 pid 77"} {
		s.Do(t, "SET", "redlatch:label:"+strings.TrimSuffix(owners[i], ":%d"), label)
	}
	s.Do(t, "HSET", "billing:run", ours+":1", 1)
	for i := range 12 {
		enqueue(t, s, "billing:run", fmt.Sprintf(java+":%d", 1000+i))
	}
	s.Do(t, "HSET", "nightly-report", java+":9", 1)
	names := []string{"orders:1", "orders:2", "orders:3", "orders:10", "stock:4", "stock:7", "stock:12"}
	for _, name := range names[:4] {
		for k := range 5 {
			listen(t, s, name, fmt.Sprintf(owners[k%3], k))
		}
	}
	for end, n := time.Now().Add(d), 0; time.Now().Before(end); n++ {
		time.Sleep(100 * time.Millisecond)
		s.Do(t, "PEXPIRE", "billing:run", 30_000-n%100*100)
		at := rand.IntN(len(names))
		name, busy := names[at], math.Sin(float64(n)/200) > rand.Float64()*2-1
		switch {
		case rand.IntN(6) > 0:
		case at < 4 && busy:
			k := rand.IntN(5)
			owner := fmt.Sprintf(owners[k%3], k)
			s.Do(t, "LREM", codec.QueueKey(name), 0, owner)
			enqueue(t, s, name, owner)
		case s.Do(t, "EXISTS", name) == int64(1) && rand.IntN(3) > 0:
			s.Do(t, "DEL", name)
			s.Do(t, "LPOP", codec.QueueKey(name))
		case busy || rand.IntN(3) > 0:
			s.Do(t, "DEL", name)
			s.Do(t, "HSET", name, fmt.Sprintf(owners[rand.IntN(3)], rand.IntN(5)), 1)
			s.Do(t, "PEXPIRE", name, 30_000)
		}
	}
}
