package screen

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/stretchr/testify/require"

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
