package redlatchui_test

import (
	"fmt"
	"html"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/redlatchui"
)

// charts returns the text alternatives of the charts on a page.
func charts(text string) (titles []string) {
	for _, m := range regexp.MustCompile(`<title>([^<]*)</title><path`).FindAllStringSubmatch(text, -1) {
		titles = append(titles, html.UnescapeString(m[1]))
	}
	return titles
}

func TestChartsFollowLocksAndGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "orders:1", program.SomeOwner, 1)
		s.Do(t, "HSET", "stock:1", program.SomeOwner, 1)
		page := open(t, s, redlatchui.Options{})
		get(t, page, "/")
		time.Sleep(6 * time.Second)
		s.Do(t, "HSET", "orders:2", javaA+":1", 1)
		program.Enqueue(t, s, "orders:2", "<b>", time.Hour)
		get(t, page, "/")
		time.Sleep(6 * time.Second)
		_, text := get(t, page, "/")
		require.Equal(t, []string{
			"Locks held since 00:00:00 UTC: 2 to 3, now 3", "Waiters since 00:00:00 UTC: up to 1, now 1",
			"Acquisitions: 1 in 15 s", "Leases expired: 0 in 15 s",
		}, charts(text)[:4])
		require.Contains(t, text, "<bdi>All locks</bdi>, the last 5 minutes, seen since 00:00:00 UTC")
		require.Len(t, charts(text), 6, "orders:2 has charts in its row")

		for address, titles := range map[string][]string{
			"/?q=orders%3A%2A": {"Locks held since 00:00:00 UTC: 1 to 2, now 2", "Waiters since 00:00:00 UTC: up to 1, now 1", "Acquisitions: 1 in 15 s"},
			"/?q=stock%3A%2A":  {"Locks held since 00:00:00 UTC: always 1, now 1", "Waiters since 00:00:00 UTC: none, now 0", "Acquisitions: 0 in 15 s"},
			"/?q=o":            {"Locks held since 00:00:00 UTC: 2 to 3, now 3"},
		} {
			_, text := get(t, page, address)
			require.Equal(t, titles, charts(text)[:len(titles)], address)
		}
		_, text = get(t, page, "/?by=prefix")
		require.Subset(t, charts(text)[4:], []string{"Locks held since 00:00:00 UTC: 1 to 2, now 2", "Acquisitions: 1 in 15 s"})
		_, text = get(t, page, "/?by=prefix&q=1")
		require.Len(t, charts(text), 4, "a part of a group has no charts")
		_, text = get(t, page, "/?q=orders%3A%2A&only=trouble")
		require.Equal(t, "Locks held since 00:00:00 UTC: 2 to 3, now 3", charts(text)[0])
		_, text = get(t, page, "/?only=numbers")
		require.Empty(t, charts(text))

		get(t, page, "/lock?name=orders:2")
		time.Sleep(2 * time.Second)
		_, text = get(t, page, "/lock?name=orders:2")
		require.Regexp(t, `^\[Held since 00:00:05 UTC: held in \d of \d intervals, now held Waiters since 00:00:05 UTC: always 1, now 1 Acquisitions: 1 in`,
			fmt.Sprint(charts(text)))
	})
}

func TestColorsAgreeWithText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Do(t, "HSET", "job", program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", "job", 600_000)
		page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
		colors := func() (badge, text, row string) {
			_, raw := get(t, page, "/lock?name=job")
			badge = regexp.MustCompile(`<span class="badge (\w+)">held<`).FindStringSubmatch(raw)[1]
			text = regexp.MustCompile(`<p class="why (\w+)"`).FindStringSubmatch(raw)[1]
			_, raw = get(t, page, "/")
			row = regexp.MustCompile(`<tr id="k[^"]*"( class="\w+")?>`).FindStringSubmatch(raw)[1]
			return badge, text, row
		}
		badge, text, row := colors()
		require.Equal(t, []string{"calm", "calm", ""}, []string{badge, text, row}, "it is not known whether the lease is renewed")
		for i := range 50 {
			program.Enqueue(t, s, "job", fmt.Sprint("dead:", i), time.Hour)
		}
		get(t, page, "/lock?name=job")
		time.Sleep(3 * time.Second)
		badge, text, row = colors()
		require.Equal(t, []string{"bad", "bad", ` class="bad"`}, []string{badge, text, row})
		s.Do(t, "DEL", "redisson_lock_queue:{job}")
		s.Do(t, "PERSIST", "job")
		time.Sleep(3 * time.Second)
		badge, text, row = colors()
		require.Equal(t, []string{"warn", "warn", ` class="warn"`}, []string{badge, text, row})
	})
}
