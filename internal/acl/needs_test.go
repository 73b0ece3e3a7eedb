package acl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// need is a line in the manual.
type need struct {
	title string
	below []string // lines that it adds to
	use   func(x *trial) error
	opts  []redlatch.Option
}

var needs = []need{
	{title: "Plain locks", use: (*trial).plainLocks},
	{title: "Fair locks", below: []string{"Plain locks", "Server time"}, use: (*trial).fairLocks},
	{title: "Fencing tokens", below: []string{"Plain locks"}, use: (*trial).tokens},
	{title: "Read/write locks", below: []string{"Plain locks"}, use: (*trial).readWriteLocks},
	{title: "Count-down latches", below: []string{"Plain locks"}, use: (*trial).latches},
	{title: "Semaphores", below: []string{"Plain locks", "Server time"}, use: (*trial).semaphores},
	{title: "Server time", below: []string{"Plain locks"}, use: (*trial).theClocks},
	{title: "Subscribers", below: []string{"Plain locks", "Fair locks"}, use: (*trial).whoListens},
	{title: "Uncertain calls", below: []string{"Plain locks"}, use: (*trial).callsInDoubt},
	{title: "Inspection", below: []string{"Plain locks", "Fair locks"}, use: (*trial).inspects},
	{title: "Shared owners", below: []string{"Plain locks"}, use: (*trial).sharesOwners},
	{
		title: "Connection names", below: []string{"Plain locks"}, use: (*trial).hasAName,
		opts: []redlatch.Option{redlatch.WithClientName("with-a-name")},
	},
	{
		title: "Replicas", below: []string{"Plain locks"}, use: (*trial).waitsForReplicas,
		opts: []redlatch.Option{redlatch.WithReplicaSync(1, time.Millisecond)},
	},
	{title: "Inspection user", use: (*trial).inspects},
	{title: "Repair user", use: (*trial).repairs},
}

// words returns the words of the lines that n adds to, and of the line for n.
func (n need) words(t *testing.T) (below, own []any) {
	t.Helper()
	for _, title := range n.below {
		line := redistest.Rights(t, title)
		if below != nil {
			line = line[2:] // the same user
		}
		below = append(below, line...)
	}
	own = redistest.Rights(t, n.title)
	if below == nil {
		return own[:3], own[3:] // SETUSER, its name, reset
	}
	return below, own[2:]
}

func TestU42ManualListsExactlyRequiredRights(t *testing.T) {
	t.Parallel()
	for _, n := range needs {
		t.Run(n.title, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(t *testing.T, s *redistest.Server) {
				t.Helper()
				below, own := n.words(t)
				require.NotEmpty(t, own)
				require.NoError(t, try(t, s, slices.Concat(below, own), n.use, n.opts...))
				for _, word := range testlevel.Part(own, 3, n.title) {
					i := slices.Index(own, word)
					fewer := slices.Concat(below, own[:i], own[i+1:])
					wrong := try(t, s, fewer, n.use, n.opts...)
					assert.Error(t, wrong, "%s is not needed", word)
				}
			})
		})
	}
}

// The manual has a line for each title, with the words from the code.
func TestManualMatchesRuleLines(t *testing.T) {
	t.Parallel()
	_, lines, found := strings.Cut(redistest.Manual(t), "\n## Rights\n")
	require.True(t, found)
	lines, _, _ = strings.Cut(lines, "\n## ")
	require.Equal(t, len(needs), strings.Count(lines, "\nACL SETUSER "), "lines that are not tried")
	titles := map[string]bool{}
	for _, n := range acl.All() {
		words := n.Words("app:")
		switch {
		case n.Title != "":
			titles[n.Title] = true
			require.Equal(t, lineOf(&n, words), redistest.Rights(t, n.Title), n.Title)
		case n.ID == acl.Onlooker:
			_, line, _ := strings.Cut(redistest.Manual(t), "\nACL SETUSER onlooker ")
			line, _, _ = strings.Cut(line, "```")
			require.Equal(t, lineOf(&n, words)[2:], anys(strings.Fields(line)))
		case n.ID == acl.Labels:
			require.Contains(t, redistest.Manual(t), "`"+strings.Join(words, " ")+"`")
		default:
			require.Equal(t, acl.Braces, n.ID, "not in the manual")
		}
	}
	for _, n := range needs {
		require.True(t, titles[n.title], "%s is not in the code", n.title)
		require.Contains(t, lines, "\n### "+n.title+"\n")
	}
}

// lineOf returns the arguments of the need's ACL command.
func lineOf(n *acl.Need, words []string) []any {
	line := []any{"SETUSER", n.User}
	if !n.Adds() {
		line = append(line, "reset", "on", ">"+redistest.Password)
	}
	return append(line, anys(words)...)
}

func anys(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

func TestInspectAndRepairUsersCannotLock(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for _, title := range []string{"Inspection user", "Repair user"} {
			wrong := try(t, s, redistest.Rights(t, title), func(x *trial) error { return x.each(x.holdsTwice) })
			require.Error(t, wrong)
			require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
		}
		look := func(x *trial) error { return x.each(x.forces) }
		require.Error(t, try(t, s, redistest.Rights(t, "Inspection user"), look))
	})
}

// Redis rejects a pattern together with ~*.
func TestServerAcceptsRuleForAllNames(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for _, n := range acl.All() {
			args := append([]any{"SETUSER", "of-" + n.ID}, anys(n.Words(""))...)
			require.Equal(t, "OK", s.Do(t, "ACL", args...), n.ID)
		}
	})
}

// Each missing optional right gives one warning that names it.
func TestU42MissingRightIsNamedInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missing, line, names string // the line starts with line, and names the right
		use                  func(x *trial) error
		opts                 []redlatch.Option
	}{
		{"+time", "cannot read the server's clock", `right=+time`, (*trial).waitsForLong, nil},
		{"+client|setname", "the server rejects CLIENT SETNAME", `right=+client|setname`, (*trial).reconnects,
			[]redlatch.Option{redlatch.WithClientName("with-a-name")}},
		{"+client|id", "cannot fence in-doubt calls", `right=+client|id`, (*trial).callsInDoubt, nil},
		{"+client|info", "CLIENT KILL by ID only", `right=+client|info`, (*trial).callsInDoubt, nil},
		{"+client|kill", "cannot fence in-doubt calls", `right=+client|kill`, (*trial).callsInDoubt, nil},
		{"+pubsub|numsub", "cannot count waiters of other processes", "PUBSUB", (*trial).takesTurns, nil},
		{"+role", "cannot count waiters of other processes", "ROLE", (*trial).takesTurns, nil},
		{"+pubsub|numsub", "cannot detect dead waiters of fair locks", "PUBSUB", (*trial).waitsForLong, nil},
		{"+role", "cannot detect dead waiters of fair locks", "ROLE", (*trial).waitsForLong, nil},
	} {
		t.Run(fmt.Sprintf("%s %s", c.missing, c.line), func(t *testing.T) {
			t.Parallel()
			if c.line == "cannot detect dead waiters of fair locks" {
				testlevel.All(t, "five seconds until the first heartbeat, as in the tests of internal/fairqueue")
			}
			rights := everything(t)
			i := slices.Index(rights, any(c.missing))
			require.Positive(t, i)
			var lines []string
			wrong := try(t, redistest.Start(t), slices.Delete(rights, i, i+1), func(x *trial) error {
				err := c.use(x)
				lines = slices.DeleteFunc(x.log.Lines(refusals...), func(line string) bool {
					return strings.Contains(line, "level=DEBUG")
				})
				return err
			}, c.opts...)
			require.Len(t, lines, 1, "%v", wrong)
			require.Contains(t, lines[0], "level=WARN msg=\"redlatch: "+c.line)
			require.Contains(t, lines[0], c.names)
			require.ErrorContains(t, wrong, lines[0], "and nothing else went wrong")
		})
	}
}

// waitsForLong waits for a fair lock until the client has compared clocks and counted subscribers.
func (x *trial) waitsForLong() error {
	l := rfairlock.New(x.client, x.names()[0])
	x.heldByHand(l.Name())
	x.queuedByHand(l.Name(), map[string]time.Duration{foreign: time.Hour}, foreign)
	w := x.await(l)
	err := x.patiently("a command is rejected", func() bool { return x.refused() != nil })
	w.cancel()
	<-w.done
	return err
}

// reconnects loses its connections twice.
func (x *trial) reconnects() error {
	for range 2 {
		x.server.KillClients(x, "normal")
		err := x.patiently("it is back", func() bool {
			_, err := rlock.New(x.client, x.names()[0]).IsLocked(x.Context())
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takesTurns transfers a lock within the process until the client has let other processes go first
// several times.
func (x *trial) takesTurns() error {
	l := rlock.New(x.client, x.names()[0])
	ended := make(chan error)
	for range 200 {
		w := x.awaitFor(6*soon, locks(l)) // for the turns of all callers before it
		go func() { ended <- w.unlock() }()
	}
	var all error
	for range 200 {
		all = errors.Join(all, <-ended)
	}
	return all
}

func TestPatternsEscapePrefixes(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"":         "~redisson_unlock_latch:{*",
		"app:":     "~redisson_unlock_latch:{app:*",
		"{app}:":   "~redisson_unlock_latch:{app}:*",
		`a*b?c[d]`: `~redisson_unlock_latch:{a\*b\?c\[d\]*`,
	} {
		require.Equal(t, want, acl.Of(acl.Owners).Patterns[0].Word(prefix))
	}
	require.Equal(t, "redisson_unlock_latch:{app:x}:", acl.Of(acl.Owners).Patterns[0].Example("app:x"))
	require.Equal(t, "redlatch:label:app:x", acl.Of(acl.Labels).Patterns[0].Example("app:x"))
}

func TestCanHoldRejectsTextThatEndsARule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "app:", "{app}:", `a*b?c[d]\`, "ørder-日本:", "a+b@c~d&e#f"} {
		require.True(t, acl.CanHold(text), "%q", text)
	}
	for _, text := range []string{"a b +@all ~*", "a\nb", "a\tb", "a\x00b", `a"b`, "a'b", "a\u00a0b", "a\u202eb", "\x1b[2J", "a\xffb"} {
		require.False(t, acl.CanHold(text), "%q", text)
	}
}

func TestBracePatternsAppearOnlyWhenNeeded(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]bool{"app:": true, "": false, "{app}:": false, "a{": false} {
		require.Equal(t, want, slices.Contains(acl.Of(acl.Plain).Words(prefix), "~{"+prefix+"*"), prefix)
	}
}
