package redlatchui_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

var (
	rowLink = regexp.MustCompile(`<th scope="row"><a href="([^"]*)"><bdi>([^<]*)</bdi></a>`)
	heading = regexp.MustCompile(`<h1><bdi>([^<]*)</bdi></h1>`)
)

// Whatever bytes a name has, it is shown as text, and its link leads to its page.
func TestNamesAreShownAsTextAndLeadToTheirPages(t *testing.T) {
	t.Parallel()
	names := map[string]string{ // as they are shown
		"orders:42":                         "orders:42",
		`<script>alert(1)</script>`:         `<script>alert(1)</script>`,
		`"><img src=x onerror=alert(1)>`:    `"\"><img src=x onerror=alert(1)>"`,
		"javascript:alert(1)":               "javascript:alert(1)",
		"a&name=b#c?d%00/../e":              "a&name=b#c?d%00/../e",
		"evil\u202egnp.exe":                 `"evil\u202egnp.exe"`,
		"\x1b[31mred\x00\r\n":               `"\x1b[31mred\x00\r\n"`,
		"bytes\xff\xfe":                     `"bytes\xff\xfe"`,
		"שלום":                              "שלום",
		" ":                                 `" "`,
		".":                                 ".",
		"..":                                "..",
		"../../etc":                         "../../etc",
		strings.Repeat("long", 300):         "longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong … longlonglonglonglonglonglonglonglonglong (1200 bytes)",
		strings.Repeat("m", 1<<20) + "\xff": "",
	}
	s := redistest.Start(t)
	for name := range names {
		s.Do(t, "HSET", name, program.SomeOwner, 1)
	}
	page := open(t, s, redlatchui.Options{})
	status, text := get(t, page, "/?sort=name")
	require.Equal(t, 200, status)
	require.Less(t, len(text), 100_000, "a name of a megabyte is cut")
	links := rowLink.FindAllStringSubmatch(text, -1)
	require.Len(t, links, len(names))
	require.Equal(t, 2, strings.Count(text, "<script"), "the page's own")
	require.NotContains(t, text, "<img src=x")
	seen := map[string]bool{}
	for _, l := range links {
		link, shown := html.UnescapeString(l[1]), html.UnescapeString(l[2])
		require.Truef(t, strings.HasPrefix(link, "lock?"), "a link that stays here: %q", link)
		require.Less(t, len(link), 5000)
		seen[shown] = true
		status, text := get(t, page, "/"+link)
		require.Equal(t, 200, status, shown)
		h1 := heading.FindStringSubmatch(text)
		require.NotNil(t, h1, shown)
		require.Equal(t, shown, html.UnescapeString(h1[1]))
		require.Contains(t, text, "held", shown)
		require.NotContains(t, text, "\u202e")
		require.NotContains(t, text, "\x1b")
		require.Equal(t, 2, strings.Count(text, "<script"), shown)
	}
	for name, shown := range names {
		if shown != "" {
			require.True(t, seen[shown], "%q as %q", name, shown)
		}
	}
}

// A label, an owner and a field of a queue are as untrusted as a name.
func TestOwnersAndLabelsAreShownAsText(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "a", program.SomeOwner, 1)
	s.Do(t, "SET", "redlatch:label:"+program.SomeOwner[:36], "<b>\u202elabel")
	s.Do(t, "RPUSH", "redisson_lock_queue:{a}", "</table><script>x</script>\x1b")
	page := open(t, s, redlatchui.Options{})
	for _, address := range []string{"/", "/lock?name=a"} {
		status, text := get(t, page, address)
		require.Equal(t, 200, status)
		require.NotContains(t, text, "<b>")
		require.NotContains(t, text, "</table><script>")
		require.NotContains(t, text, "\u202e")
		require.NotContains(t, text, "\x1b")
	}
}

func TestOnlyLocksOfThePatternHavePages(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "orders:1", program.SomeOwner, 1)
	s.Do(t, "HSET", "secret:1", program.SomeOwner, 1)
	page := open(t, s, redlatchui.Options{Pattern: "orders:*"})
	_, text := get(t, page, "/")
	require.Contains(t, text, "orders:1")
	require.NotContains(t, text, "secret:1")
	for _, path := range []string{"/lock", "/events"} {
		status, text := get(t, page, path+"?name="+url.QueryEscape("secret:1"))
		require.Equal(t, 404, status)
		require.NotContains(t, text, program.SomeOwner)
		require.Contains(t, text, "Locks of that name are not shown here.")
	}
	status, _ := get(t, page, "/lock?hash="+strings.Repeat("0", 64))
	require.Equal(t, 404, status)
	status, _ = get(t, page, "/lock")
	require.Equal(t, 400, status)
}
