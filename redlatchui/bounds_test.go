package redlatchui_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// A lock with very many readers has a page that a browser can show.
func TestOfVeryManyHoldersSomeAreShown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	readers := []any{"books", "mode", "read"}
	for i := range 150 {
		readers = append(readers, fmt.Sprint(javaA, ":", i+1), 1)
	}
	s.Do(t, "HSET", readers...)
	page := open(t, s, redlatchui.Options{Access: always(redlatchui.FullAccess)})
	text := says(t, page, "/lock?name=books", "and 149 others hold it")
	require.Equal(t, 100, strings.Count(text, "entered 1 ×"))
	require.Contains(t, text, "and 50 more Held for at least")
	require.NotContains(t, text, "Force unlock")
	require.Contains(t, says(t, page, "/unlock?name=books", "more holders than a form can name"), "books")
}

// A circle of very many owners.
func TestOfAVeryLongCircleSomeIsShown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 60 {
		lock := fmt.Sprint("orders:", i)
		s.Do(t, "HSET", lock, fmt.Sprint(javaA, ":", i+1), 1)
		waiter := fmt.Sprint(javaA, ":", (i+1)%60+1)
		program.Enqueue(t, s, lock, waiter, time.Hour)
		program.Listen(t, s, lock, waiter)
	}
	page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
	text := says(t, page, "/who", "and 10 more waits")
	require.Equal(t, 50, strings.Count(text, " waits for orders:"))
}

// What was refused is written down, and no more of it than one can read.
func TestWhatIsRefusedIsCutForTheAudit(t *testing.T) {
	t.Parallel()
	page, told := acting(t, redistest.Shared(t))
	owners := make([]string, 20)
	for i := range owners {
		owners[i] = strings.Repeat("o", 2000)
	}
	name := strings.Repeat("n", 5000)
	for _, form := range []url.Values{
		{"holder": owners, "dead": owners[:1], "reason": {"x"}}, {"holder": make([]string, 500)}, {"reason": {strings.Repeat("r", 10_000)}},
	} {
		status, _ := post(t, page, "/unlock?name="+name, form)
		require.Equal(t, 400, status)
		all := told.take()
		require.Len(t, all, 1)
		require.Len(t, all[0].Lock, 64)
		require.LessOrEqual(t, len(all[0].Owners), 32)
		require.LessOrEqual(t, len(strings.Join(all[0].Owners, "")), 20*1024)
		require.LessOrEqual(t, len(all[0].Reason), 1600)
	}
}

// The ids of permits are bytes that others wrote, too.
func TestPermitsAreShownAsText(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "SET", "crawl", 3)
	s.Do(t, "ZADD", codec.PermitsKey("crawl"), time.Now().Add(time.Hour).UnixMilli(), "\u202e<b>\x1b"+strings.Repeat("x", 100_000))
	page := open(t, s, redlatchui.Options{})
	says(t, page, "/lock?name=crawl", "Permits that are taken")
	_, text := get(t, page, "/lock?name=crawl")
	for _, raw := range []string{"\u202e", "<b>", "\x1b"} {
		require.NotContains(t, text, raw)
	}
	require.Less(t, len(text), 10_000)
}
