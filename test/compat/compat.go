package compat

import (
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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// Keep in sync with scripts/compat.sh.
const defaultReleases = "3.17.7 3.52.0 4.3.1"

// Keep in sync with the Makefile.
const supportedReleases = "3.17.7 3.20.1 3.24.3 3.28.0 3.37.0 3.45.1 3.52.0 4.0.0 4.3.1 4.7.0"

const atMost = 30 * time.Second

type compat struct {
	release oracle.Release
	program peer.Program
	peer    *peer.Peer
	table   *verdicts
}

// ShareLocks runs the tests against live Redisson clients. TestMain must call [Member] first.
func ShareLocks(t *testing.T) {
	t.Helper()
	testlevel.All(t, "servers and Java machines")
	table := &verdicts{releases: releases()}
	t.Cleanup(func() { t.Logf("Redisson's releases and comparisons:\n%s", table) })
	for _, text := range releases() {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			release := must(oracle.ParseRelease(text))(t)
			program := peer.Find(t, checkout(t), text, "NOT COMPARED WITH REDISSON "+text)
			c := &compat{release: release, program: program, peer: peer.Start(t, program), table: table}
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

type java struct {
	peer   *peer.Peer
	client string
	id     string
}

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
		_, _ = j.begin(peer.Command{"op": "shutdown"}).Wait(atMost)
	})
	return j
}

func (j *java) begin(c peer.Command) *peer.Call {
	// Thread names have the client as a prefix, because a thread of another test may be blocked.
	thread := j.client
	if name, ok := c["thread"]; ok {
		thread += " " + fmt.Sprint(name)
	}
	return j.peer.Go(peer.Command{"client": j.client}.With(c).With(peer.Command{"thread": thread}))
}

func (j *java) do(t *testing.T, c peer.Command) peer.Reply {
	t.Helper()
	reply := must(j.begin(c).Wait(atMost))(t)
	return reply
}

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

func (j *java) thread(t *testing.T, name string) int64 {
	t.Helper()
	return j.number(t, peer.Command{"op": "thread", "thread": name})
}

func (j *java) owner(t *testing.T, thread string) string {
	t.Helper()
	return fmt.Sprintf("%s:%d", j.id, j.thread(t, thread))
}

// verdicts is a table with a line for each comparison and a column for each release. It is safe for concurrent use.
type verdicts struct {
	mu       sync.Mutex
	lines    []string
	releases []string
	cells    map[[2]string]string
}

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

// ownLine adds a line for the test to the table. It must be called before t.Parallel to keep the order of the lines.
func (c *compat) ownLine(t *testing.T) {
	t.Helper()
	line := strings.ReplaceAll(path.Base(t.Name()), "_", " ")
	c.table.note(t, c.release.String(), line, func() string { return "ok" })
}

func (c *compat) beside(t *testing.T) {
	t.Helper()
	c.ownLine(t)
	t.Parallel()
}

func (v *verdicts) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\t%s\n", strings.Join(v.releases, "\t"))
	for _, line := range v.lines {
		cells := []string{line}
		for _, release := range v.releases {
			cells = append(cells, v.cells[[2]string{release, line}])
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
	return b.String()
}
