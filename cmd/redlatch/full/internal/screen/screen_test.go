package screen

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/vt"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/top"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// terminal is a simulated terminal that also keeps what was written to it.
type terminal struct {
	vt.MockTerm

	written bytes.Buffer
}

func (t *terminal) Write(b []byte) (int, error) {
	t.written.Write(b)
	return t.MockTerm.Write(b)
}

// shown is a view on a simulated terminal, of an embedded server.
type shown struct {
	*view

	term   *terminal
	server *redistest.MiniServer
	t      *testing.T
}

// show must be called in a bubble.
func show(t *testing.T, width, height int) *shown {
	t.Helper()
	server := redistest.Mini(t, embedded.WithInProcess())
	client, err := redlatch.New(server.Server.Dial, redlatch.WithServerTime())
	require.NoError(t, err)
	source, err := board.FromClient(client)
	require.NoError(t, err)
	b := board.New(source, "", 2*time.Second)
	term := &terminal{MockTerm: vt.NewMockTerm(vt.MockOptSize{X: vt.Col(width), Y: vt.Row(height)})}
	s, err := tcell.NewTerminfoScreenFromTty(term, tcell.OptNegotiation(false), tcell.OptTerm("xterm-256color"))
	require.NoError(t, err)
	require.NoError(t, s.Init())
	t.Cleanup(func() {
		s.Fini()
		require.NoError(t, b.Close())
		require.NoError(t, client.Close())
	})
	return &shown{newView(s, top.Options{Board: b, Place: "redis://127.0.0.1:6379"}), term, server, t}
}

// rows draws, and returns the text on the screen.
func (s *shown) rows() []string {
	s.draw()
	width, height := s.screen.Size()
	rows := make([]string, height)
	for y := range rows {
		for x := 0; x < width; {
			text, _, columns := s.screen.Get(x, y)
			rows[y] += text
			x += max(columns, 1)
		}
		rows[y] = strings.TrimRight(rows[y], " ")
	}
	return rows
}

func (s *shown) text() string { return strings.Join(s.rows(), "\n") }

// names returns the names in the table.
func (s *shown) names() (names []string) {
	for _, row := range s.rows()[headRows+1:] {
		if len(row) > gap && !strings.HasPrefix(row, "enter") && !strings.HasPrefix(row, "filter") {
			names = append(names, strings.Fields(row[gap:])[0])
		}
	}
	return names
}

func (s *shown) keys(keys ...any) {
	for _, k := range keys {
		switch k := k.(type) {
		case tcell.Key:
			s.press(k, "")
		case string:
			for _, r := range k {
				s.press(tcell.KeyRune, string(r))
			}
		}
	}
}

// given shows locks as a scan would find them now.
func (s *shown) given(entries ...board.Entry) {
	at := time.Now()
	all := &board.Locks{Seen: board.Seen{At: at, Next: at.Add(time.Hour)}, Entries: entries, Total: len(entries)}
	for i := range entries {
		e := &entries[i]
		e.At = at
		all.Waiting += int(e.Waiters())
		if e.Trouble != "" {
			all.Troubled++
		}
	}
	s.set(all)
}

func heldBy(name, label string, since time.Duration, left time.Duration, waiters int64) board.Entry {
	return board.Entry{
		Lock: &inspect.Lock{Name: name, Kind: inspect.Plain, Holders: []inspect.Holder{{Owner: program.SomeOwner, Count: "1", Label: label}}, TTL: left, Queue: waiters},
		Age:  board.Age{Since: time.Now().Add(-since), Exact: true},
	}
}

func someLocks() []board.Entry {
	stuck := board.Entry{Lock: &inspect.Lock{Name: "stuck", Kind: inspect.Fair, Queue: 3}, Trouble: board.Untaken}
	eternal := heldBy("eternal", "import@host-2 pid 7", 26*time.Hour, redlatch.NoTTL, 0)
	eternal.Trouble, eternal.Exact = board.NoLease, false
	return []board.Entry{stuck, eternal, heldBy("orders:42", "nightly@host-1 pid 4711", 90*time.Second, 27*time.Second, 12), heldBy("b", "", time.Second, time.Hour, 0)}
}

func TestTableFitsNarrowTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		shown := strings.TrimPrefix(`
redlatch top  redis://127.0.0.1:6379           4 locks, 2 in trouble, 15 waiting
sorted by trouble
  NAME                            HELD    WAIT    LEASE  HOLDER
! eternal                      >26h00m             none  import@host-2 pid 7
! stuck                                      3           free
  orders:42                      1m30s      12      27s  nightly@host-1 pid 4711
  b                                 1s            1h00m  Redlatch 00000001:7
`, "\n")
		require.Equal(t, shown+"\n\nenter lock   f filter   s sort   ? help   q quit", s.text())
		manual, err := os.ReadFile("../../../../../docs/operations.md")
		require.NoError(t, err)
		require.Contains(t, string(manual), "\n```\n"+shown+"```\n")
		for _, row := range s.rows() {
			require.LessOrEqual(t, len(row), 80)
		}
	})
}

func TestShortLabelKeepsHostAndProcessID(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"nightly-report.sh@host-1 pid 4711":             "nightl..@host-1 pid 4711",
		"some@host-12345678 pid 4711":                   "host-12345678 pid 4711",
		"job@web-17.eu-west-1.compute.internal pid 812": "web-17.eu-west.. pid 812",
		"job@orders-7d9f8b6c5d-x2x9z pid 1":             "..7d9f8b6c5d-x2x9z pid 1",
		"not made of such parts, though long":           "not made of such parts, though long",
	} {
		require.Equal(t, want, shortLabel(label, 24), label)
	}
}

func TestSeveralHoldersAreCounted(t *testing.T) {
	t.Parallel()
	e := heldBy("a", "nightly@host-1 pid 4711", 0, 0, 0)
	e.Holders = append(e.Holders, e.Holders...)
	require.Equal(t, "(2) n..@host-1 pid 4711", holderText(&e, 23))
	e.More = true
	require.Equal(t, "(2+) nightly@host-1 pid 4711 (Redlatch 00000001:7)", holderText(&e, 80))
}

func TestNarrowerTerminalsLeaveOutColumns(t *testing.T) {
	t.Parallel()
	for width, titles := range map[int]string{62: "NAME HELD WAIT LEASE HOLDER", 60: "NAME HELD WAIT LEASE", 45: "NAME HELD WAIT LEASE", 44: "NAME HELD LEASE", 36: "NAME HELD", 10: "NAME HELD"} {
		var all []string
		for _, c := range columns(width) {
			all = append(all, c.title)
			require.Positive(t, c.width)
		}
		require.Equal(t, strings.Fields(titles), all, width)
	}
}

func TestWideTerminalShowsKindAndTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 200, 10)
		s.given(someLocks()...)
		rows := s.rows()
		require.Regexp(t, `^  NAME +KIND +HELD +WAIT +LEASE +TROUBLE +HOLDER$`, rows[2])
		require.Regexp(t, `^! stuck +fair +3 +free with a queue +free$`, rows[4])
		require.Regexp(t, `nightly@host-1 pid 4711 \(Redlatch \S+\)$`, rows[5])
	})
}

func TestColumnKeysSortTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		for key, names := range map[string]string{
			"1": "eternal stuck orders:42 b", "2": "b eternal orders:42 stuck", "3": "eternal orders:42 b stuck",
			"4": "orders:42 stuck b eternal", "5": "orders:42 b eternal stuck", "6": "b eternal orders:42 stuck",
		} {
			s.keys(key)
			require.Equal(t, strings.Fields(names), s.names(), key)
		}
		s.given(heldBy("inv:10", "", 0, time.Second, 0), heldBy("inv:9", "", 0, time.Second, 0))
		for _, key := range []string{"2", "4", "5", "6"} {
			s.keys(key)
			require.Equal(t, []string{"inv:9", "inv:10"}, s.names(), key)
		}
		s.keys("6s")
		require.Contains(t, s.text(), "sorted by trouble", "the first follows the last")
	})
}

func TestFilterNarrowsTableUntilEscape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		s.keys("fer")
		require.Equal(t, []string{"eternal", "orders:42"}, s.names(), "q and s are letters here")
		s.keys("q", tcell.KeyBackspace, tcell.KeyEnter)
		require.Contains(t, s.text(), "filter er: 2")
		s.keys("/e\u0301", tcell.KeyBackspace, tcell.KeyDelete, tcell.KeyEnter)
		require.Contains(t, s.text(), "filter er: 2", "one character was removed")
		s.keys("/", tcell.KeyCtrlU, "o*2", tcell.KeyEnter)
		require.Equal(t, []string{"orders:42"}, s.names())
		s.keys(tcell.KeyEsc)
		require.Len(t, s.names(), 4)
		require.False(t, s.quit)
		s.keys("q")
		require.True(t, s.quit)
	})
}

func TestCursorStaysOnItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		s.keys(tcell.KeyDown, tcell.KeyDown)
		s.given(append(someLocks(), heldBy("a", "", time.Second, redlatch.NoTTL, 99))...)
		require.Equal(t, "orders:42", s.table.rows[s.table.cursor].Name)
		s.keys(tcell.KeyEnter)
		require.Equal(t, "orders:42", s.lock.name)
		s.keys(tcell.KeyEsc, tcell.KeyEnd, tcell.KeyPgUp, tcell.KeyHome)
		require.Nil(t, s.lock)
		require.Zero(t, s.table.cursor)
	})
}

func TestCursorStaysAmongNeighborsOfVanishedLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		locks := []board.Entry{heldBy("a", "", time.Second, time.Minute, 0), heldBy("b", "", time.Second, time.Minute, 0), heldBy("c", "", time.Second, time.Minute, 0)}
		s.given(locks...)
		s.keys("2", tcell.KeyDown)
		s.given(locks[0], locks[2])
		require.Equal(t, "c", s.table.rows[s.table.cursor].Name)
		s.given(locks...)
		require.Equal(t, "c", s.table.rows[s.table.cursor].Name, "the vanished lock is forgotten")
	})
}

func TestAgesAndLeasesCountFromEachRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(heldBy("a", "", time.Minute, 2*time.Minute, 0))
		s.table.all.Entries[0].At = time.Now().Add(-10 * time.Second) // early in a long scan
		require.Regexp(t, `  a +1m0s +1m50s `, s.text())
	})
}

func TestLocksWithoutLeaseSortByName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		locks := []board.Entry{heldBy("b", "", time.Second, redlatch.NoTTL, 0), heldBy("a", "", time.Second, redlatch.NoTTL, 0)}
		s.given(locks...)
		locks[1].At = locks[1].At.Add(time.Second) // a scan takes a while
		s.keys("5")
		require.Equal(t, []string{"a", "b"}, s.names())
	})
}

func TestLongFilterShowsItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 30, 10)
		s.keys("f", strings.Repeat("世", 20)+"end")
		rows := s.rows()
		require.True(t, strings.HasSuffix(rows[len(rows)-1], "世世end"), rows[len(rows)-1])
	})
}

func TestLongTableScrollsToCursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		var many []board.Entry
		for i := range 20_000 {
			many = append(many, heldBy(fmt.Sprintf("lock-%05d", i), "", time.Second, time.Minute, 0))
		}
		s.given(many...)
		s.keys("2")
		require.Len(t, s.names(), s.visible())
		s.term.written.Reset()
		s.keys(tcell.KeyEnd)
		names := s.names()
		require.Equal(t, "lock-19999", names[len(names)-1])
		require.Less(t, s.term.written.Len(), 4096, "only visible rows are written")
	})
}

func TestCutListSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		s.table.all.Total = 200_000
		require.Contains(t, s.text(), "sorted by trouble; the first 4 of 200000 locks")
		require.Contains(t, s.text(), "200000 locks, at least 2 in trouble, 15 waiting")
		time.Sleep(time.Second)
		s.keys("2")
		require.Contains(t, s.text(), "sorted by name; 4 of 200000 locks until the next scan")
	})
}

var colors = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

func TestColorsAreForegroundFromTerminalPalette(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		all := someLocks()
		all[0].Trouble = board.DeadFront
		s.given(all...)
		s.text()
		s.keys(tcell.KeyDown) // away from the first row
		s.text()
		written := s.term.written.String()
		require.Regexp(t, `31m! stuck`, written, "red")
		require.Regexp(t, `35m! eternal`, written, "only a warning")
		sgr := strings.Join(colors.FindAllString(written, -1), " ")
		require.NotRegexp(t, `[;\[](4[0-7]|48|38|9[0-7]|10[0-7])[;m:]`, sgr)
	})
}

func TestNoColorKeepsMarks(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		require.Contains(t, s.text(), "\n! stuck")
		sgr := strings.Join(colors.FindAllString(s.term.written.String(), -1), " ")
		require.NotRegexp(t, `[;\[](3[0-8]|9[0-7])[;m:]`, sgr)
	})
}

func TestHelpClosesOnAnyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		s.given(someLocks()...)
		s.keys("?")
		for line := range strings.Lines(help) {
			require.Contains(t, s.text(), strings.TrimSpace(line))
		}
		s.keys("q")
		require.False(t, s.quit)
		require.Contains(t, s.text(), "orders:42")
	})
}
