package screen

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestPageSplitsLongWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 30, 30)
		s.given(heldBy("a", "", time.Second, time.Minute, 0))
		s.keys(tcell.KeyEnter)
		s.lock.lock = &board.Lock{Seen: s.table.all.Seen, Name: "a", Holders: []inspect.Holder{{Owner: program.SomeOwner}}, QueueUnread: strings.Repeat("long", 20)}
		text := strings.ReplaceAll(s.text(), "\n  ", "")
		require.Contains(t, text, program.SomeOwner)
		require.Contains(t, text, strings.Repeat("long", 20))
	})
}

func TestPageUsesAllRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(heldBy("a", "", time.Second, time.Minute, 0))
		s.keys(tcell.KeyEnter)
		lock := &board.Lock{Seen: s.table.all.Seen, Name: "a", Holders: make([]inspect.Holder, 20)}
		s.lock.lock = lock
		require.NotEmpty(t, s.rows()[8], "above the keys")
	})
}

func TestPermitsHaveLeasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		left := time.Minute.Milliseconds()
		semaphore := board.Entry{Lock: &inspect.Lock{Name: "crawl", Kind: inspect.Semaphore, TTL: redlatch.NoTTL, Number: &inspect.Number{Available: 2, Taken: 1}}}
		s.given(semaphore, heldBy("b", "", time.Second, redlatch.NoTTL, 0))
		s.keys("5")
		require.Regexp(t, `\n  b .* none .*\n  crawl +1 taken, 2 free\n`, s.text())
		s.keys(tcell.KeyEnd, tcell.KeyEnter)
		s.lock.lock = &board.Lock{Seen: s.table.all.Seen, Name: "crawl", Kind: inspect.Semaphore, Number: semaphore.Number,
			Holders: []inspect.Holder{{Owner: "0123456789abcdef", Mode: "permit", LeftMillis: &left}, {Owner: "fedcba9876543210", Mode: "permit"}}}
		require.Regexp(t, `\nPERMITS  2\n  60 s left +0123456789abcdef\n  never ends +fedcba9876543210\n`, s.text())
	})
}

const hostile = "\x1b[2J\x1b]0;title\a<b>\u202ex\r\n\u009b31m\xff"

func TestHostileTextsAreEscaped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 200, 20)
		s.given(heldBy(hostile, hostile, time.Second, time.Minute, 0))
		s.Pattern, s.table.filter = hostile, ""
		s.term.written.Reset()
		text := s.text()
		s.keys("f"+hostile, tcell.KeyEnter)
		text += s.text()
		s.keys(tcell.KeyEsc, tcell.KeyEnter)
		at := time.Now()
		s.lock.lock = &board.Lock{Seen: board.Seen{At: at, Next: at.Add(time.Hour), Err: fmt.Errorf("%s", hostile)}, Name: hostile, Kind: hostile,
			Holders: []inspect.Holder{{Owner: hostile, Label: hostile, Count: hostile}}, Waiting: 1, QueueUnread: hostile, Uncounted: hostile,
			Queue: []board.Waiter{{Position: 1, Owner: hostile, Label: hostile}}}
		text += s.text()
		require.Contains(t, text, `\x1b[2J`)
		written := s.term.written.String()
		for _, bad := range []string{"\x1b[2J", "\x1b]0", "\a", "\u202e", "\u009b", "\xff", "\r\n"} {
			require.NotContains(t, written, bad)
		}
	})
}
