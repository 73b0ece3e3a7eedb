package acl_test

import (
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
)

// need is one of the manual's lines.
type need struct {
	title string
	below []string // lines that it adds to
	use   func(x *trial) error
	opts  []redlatch.Option
}

var needs = []need{
	{title: "Plain locks", use: (*trial).plainLocks},
	{title: "Fair locks", below: []string{"Plain locks", "The clocks"}, use: (*trial).fairLocks},
	{title: "Fencing tokens", below: []string{"Plain locks"}, use: (*trial).tokens},
	{title: "Read/write locks", below: []string{"Plain locks"}, use: (*trial).readWriteLocks},
	{title: "Count-down latches", below: []string{"Plain locks"}, use: (*trial).latches},
	{title: "Semaphores", below: []string{"Plain locks", "The clocks"}, use: (*trial).semaphores},
	{title: "The clocks", below: []string{"Plain locks"}, use: (*trial).theClocks},
	{title: "Who listens", below: []string{"Plain locks", "Fair locks"}, use: (*trial).whoListens},
	{title: "Calls in doubt", below: []string{"Plain locks"}, use: (*trial).callsInDoubt},
	{title: "Inspection", below: []string{"Plain locks", "Fair locks"}, use: (*trial).inspects},
	{title: "Owners that travel", below: []string{"Plain locks"}, use: (*trial).ownersThatTravel},
	{
		title: "Names of connections", below: []string{"Plain locks"}, use: (*trial).hasAName,
		opts: []redlatch.Option{redlatch.WithClientName("with-a-name")},
	},
	{
		title: "Replicas", below: []string{"Plain locks"}, use: (*trial).waitsForReplicas,
		opts: []redlatch.Option{redlatch.WithReplicaSync(1, time.Millisecond)},
	},
	{title: "A user that inspects", use: (*trial).inspects},
	{title: "A user that repairs", use: (*trial).repairs},
}

// words returns the words of the lines that n adds to, and its own.
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

// No right too few, and none too many.
func TestU42EachRightOfTheManualIsNeededAndNoOther(t *testing.T) {
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
					if testing.Verbose() && wrong != nil {
						t.Logf("without %s: %s", word, firstLine(wrong))
					}
				}
			})
		})
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// The heading of each line of the manual stands in the table, and none is forgotten.
func TestEveryLineOfTheManualIsTried(t *testing.T) {
	t.Parallel()
	_, lines, found := strings.Cut(redistest.Manual(t), "\n## Rights\n")
	require.True(t, found)
	lines, _, _ = strings.Cut(lines, "\n## ")
	require.Equal(t, len(needs), strings.Count(lines, "\nACL SETUSER "), "lines that are not tried")
	for _, n := range needs {
		require.Contains(t, lines, fmt.Sprintf("\n### %s\n", n.title))
	}
}

// What the code goes by is what the manual says, word by word.
func TestTheManualHasTheLinesOfTheCode(t *testing.T) {
	t.Parallel()
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
			require.Equal(t, acl.Braces, n.ID, "the manual does not have it")
		}
	}
	for _, n := range needs {
		require.True(t, titles[n.title], "%s is none of the code's", n.title)
	}
}

// lineOf returns the arguments of the ACL command.
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

// The user that repairs takes no lock, and the user that inspects changes
// nothing.
func TestUsersThatInspectAndRepairTakeNoLock(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for _, title := range []string{"A user that inspects", "A user that repairs"} {
			wrong := try(t, s, redistest.Rights(t, title), func(x *trial) error { return x.each(x.holdsTwice) })
			require.Error(t, wrong)
			require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
		}
		look := func(x *trial) error { return x.each(x.forces) }
		require.Error(t, try(t, s, redistest.Rights(t, "A user that inspects"), look))
	})
}

// Redis refuses a line that adds a pattern to one of all.
func TestALineForAllNamesIsOneThatTheServerTakes(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for _, n := range acl.All() {
			args := []any{"SETUSER", "of-" + n.ID}
			for _, word := range n.Words("") {
				args = append(args, word)
			}
			require.Equal(t, "OK", s.Do(t, "ACL", args...), n.ID)
		}
	})
}
