package compat

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// defaultReleases are the oldest that is supported, the last of Redisson 3, and
// the newest. scripts/compat.sh has the same.
const defaultReleases = "3.17.7 3.52.0 4.3.1"

// supportedReleases are those whose behaviour is recorded. The Makefile has them,
// too.
const supportedReleases = "3.17.7 3.20.1 3.24.3 3.28.0 3.37.0 3.45.1 3.52.0 4.0.0 4.3.1 4.7.0"

// atMost bounds what a live Redisson is waited for. It is no claim about speed.
const atMost = 30 * time.Second

// compat is one release of Redisson under test, in a Java process of its own.
type compat struct {
	release oracle.Release
	program peer.Program
	peer    *peer.Peer
	table   *verdicts
}

// ShareLocks runs everything against live Redissons. A package that calls it must call
// [Member] first in its TestMain.
func ShareLocks(t *testing.T) {
	t.Helper()
	testlevel.All(t, "servers and Java machines")
	table := &verdicts{releases: releases()}
	t.Cleanup(func() { t.Logf("Redisson's releases and what was compared:\n%s\n%s", table, table.markdown()) })
	for _, text := range releases() {
		t.Run(text, func(t *testing.T) {
			t.Parallel() // most of what they do is to wait for leases to end
			release := must(oracle.ParseRelease(text))(t)
			program := peertest.Find(t, checkout(t), text, "NOT COMPARED WITH REDISSON "+text)
			c := &compat{release: release, program: program, peer: peertest.Start(t, program), table: table}
			t.Run("scripts", c.testScripts)
			t.Run("wake-up", c.testWakeUp)
			t.Run("fleet", c.testFleet)
			t.Run("behaviour", c.testBehaviour)
			t.Run("crashes", c.testCrashes)
			t.Run("fair", c.testFair)
			t.Run("fenced", c.testFenced)
			t.Run("read and write", c.testReadWrite)
			t.Run("semaphores and latches", c.testObjects)
		})
	}
}

func releases() []string {
	if text := os.Getenv("REDLATCH_COMPAT_VERSIONS"); text != "" {
		return strings.Fields(text)
	}
	return strings.Fields(defaultReleases)
}

// java is a Redisson client in a Java process.
type java struct {
	peer   *peer.Peer
	client string
	id     string // its UUID
}

// connect makes a client of the process, for this test.
func connect(t *testing.T, p *peer.Peer, s *redistest.Server, fields peer.Command) *java {
	t.Helper()
	return connectTo(t, p, s.URL(), fields)
}

func connectTo(t *testing.T, p *peer.Peer, url string, fields peer.Command) *java {
	t.Helper()
	j := &java{peer: p, client: redistest.Key(t)}
	var hello struct{ ID string }
	settings := peer.Command{"op": "client", "thread": j.client, "addresses": []string{url}}.With(fields)
	require.NoError(t, j.do(t, settings).Into(&hello))
	require.Len(t, hello.ID, 36)
	j.id = hello.ID
	t.Cleanup(func() {
		// A process that was halted in the test has no clients any more.
		_, _ = j.begin(peer.Command{"op": "shutdown"}).Wait(atMost)
	})
	return j
}

func (j *java) begin(c peer.Command) *peer.Call {
	// Threads of its own: one of the same name, of another test, may be waiting.
	thread := j.client
	if name, ok := c["thread"]; ok {
		thread += " " + fmt.Sprint(name)
	}
	return j.peer.Go(peer.Command{"client": j.client}.With(c).With(peer.Command{"thread": thread}))
}

// do runs a command and demands that nothing is thrown.
func (j *java) do(t *testing.T, c peer.Command) peer.Reply {
	t.Helper()
	reply := must(j.begin(c).Wait(atMost))(t)
	return reply
}

// throws runs a command and demands that it throws.
func (j *java) throws(t *testing.T, class string, c peer.Command) {
	t.Helper()
	_, err := j.begin(c).Wait(atMost)
	var thrown *peer.Exception
	require.ErrorAs(t, err, &thrown)
	require.Equal(t, class, thrown.Class, "%s", thrown.Message)
}

func (j *java) boolean(t *testing.T, c peer.Command) bool {
	t.Helper()
	var value bool
	require.NoError(t, j.do(t, c).Into(&value))
	return value
}

func (j *java) number(t *testing.T, c peer.Command) int64 {
	t.Helper()
	var value int64
	require.NoError(t, j.do(t, c).Into(&value))
	return value
}

// thread returns the id of one of its threads.
func (j *java) thread(t *testing.T, name string) int64 {
	t.Helper()
	return j.number(t, peer.Command{"op": "thread", "thread": name})
}

// owner is how the server knows one of its threads.
func (j *java) owner(t *testing.T, thread string) string {
	t.Helper()
	return fmt.Sprintf("%s:%d", j.id, j.thread(t, thread))
}

// verdicts is a table: a line for each thing compared, a column for each release.
// Safe for concurrent use.
type verdicts struct {
	mu       sync.Mutex
	lines    []string
	releases []string
	cells    map[[2]string]string
}

// note writes a cell when the test is over, so that it knows how that ended.
func (v *verdicts) note(t *testing.T, release, line string, text func() string) {
	t.Helper()
	v.set(release, line, "not finished")
	t.Cleanup(func() {
		if t.Failed() {
			v.set(release, line, "FAILED")
			return
		}
		if t.Skipped() {
			v.set(release, line, "skipped")
			return
		}
		v.set(release, line, text())
	})
}

func (v *verdicts) set(release, line, cell string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Contains(v.lines, line) {
		v.lines = append(v.lines, line)
	}
	if !slices.Contains(v.releases, release) {
		v.releases = append(v.releases, release)
	}
	if v.cells == nil {
		v.cells = map[[2]string]string{}
	}
	v.cells[[2]string{release, line}] = cell
}

// ownLine gives a test a line in the table, called as the test is. Called before
// t.Parallel the lines stand in the order of the tests.
func (c *compat) ownLine(t *testing.T) {
	t.Helper()
	line := strings.ReplaceAll(path.Base(t.Name()), "_", " ")
	c.table.note(t, c.release.String(), line, func() string { return "ok" })
}

// beside gives a test a line in the table, and runs it beside others.
func (c *compat) beside(t *testing.T) {
	t.Helper()
	c.ownLine(t)
	t.Parallel()
}

// String lays the table out.
func (v *verdicts) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\t%s\n", strings.Join(v.releases, "\t")) // to memory
	for _, line := range v.lines {
		cells := []string{line}
		for _, release := range v.releases {
			cells = append(cells, v.cells[[2]string{release, line}])
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // to memory
	}
	_ = w.Flush() // to memory
	return b.String()
}

// columns of the table of docs/compatibility.md, each with its line in the table of all.
var columns = [][2]string{
	{"plain: random steps", "plain, " + oracle.Ways[0].Name},
	{"fair: random steps", "fair, " + oracle.Ways[0].Name},
	{"a mixed fleet", "exclusion"},
	{"its shares", "shares"},
	{"Go wakes Java, ms", "Go wakes Java, ms"},
	{"Java wakes Go, ms", "Java wakes Go, ms"},
}

func markdownRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// markdown returns the table of docs/compatibility.md, a row for each release.
func (v *verdicts) markdown() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	head := []string{"Redisson"}
	for _, c := range columns {
		head = append(head, c[0])
	}
	var body strings.Builder
	for _, release := range v.releases {
		row := []string{release}
		for _, c := range columns {
			row = append(row, cmp.Or(v.cells[[2]string{release, c[1]}], "not run"))
		}
		body.WriteString(markdownRow(row))
	}
	return markdownRow(head) + strings.Repeat("|---", len(head)) + "|\n" + body.String()
}
