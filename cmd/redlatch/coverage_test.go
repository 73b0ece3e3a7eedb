package main

import (
	"flag"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// showNoLocks are the commands that show no locks of other clients, and why. The tests
// hold that all others show locks of both languages, as text and as JSON.
var showNoLocks = map[string]string{
	"run":      "what it prints is COMMAND's, but for run-held.golden",
	"hold":     "it prints the owner that it holds a lock for, or assignments; its tests read them",
	"release":  "it shows no lock",
	"doctor":   "it examines the server, with locks of its own that are gone at once",
	"demo":     "it has processes and locks of its own; its summary is checked line by line",
	"serve":    "it is a server, and prints its address",
	"ui":       "it serves a page; the tests in a browser look at a lock of a live Redisson",
	"exporter": "it shows figures; its tests compare them with the locks of a live Redisson",
	"version":  "it asks no server",
}

// coverage records, for one run, which commands have shown locks of a live Redisson and
// of Redlatch. Golden files alone do not prove which client made the locks.
type coverage struct {
	mu    sync.Mutex
	shown map[string]bool
}

// checkOutput compares the output of a command with the golden file, whose name begins with the
// command's, and records whose locks it shows, by their ids; those of Java are random.
func (f *fixture) checkOutput(t *testing.T, file, text string) {
	t.Helper()
	command := file[:strings.IndexAny(file+"-", "-.")]
	format := "text"
	if strings.HasSuffix(file, ".json") {
		format = "JSON"
	} else {
		program.Fits(t, text)
	}
	f.coverage.record(command, format, "Redlatch's", text, goID.String())
	f.coverage.record(command, format, "Redisson's", text, f.ids...)
	program.Golden(t, file, text, f.ids...)
}

// record takes a text in that tells of a lock of one of the clients given, or does not.
func (e *coverage) record(command, format, whose, text string, ids ...string) {
	for _, id := range ids {
		if strings.Contains(text, id[len(id)-8:]+":") {
			e.mu.Lock()
			e.shown[shownOf(command, format, whose)] = true
			e.mu.Unlock()
		}
	}
}

func shownOf(command, format, whose string) string {
	return strings.Join([]string{command, "in", format, "of a lock of", whose}, " ")
}

// missing returns the commands that have not shown both.
func (e *coverage) missing(t *testing.T) (all []string) {
	t.Helper()
	known := commands(t)
	for path, c := range known {
		switch {
		case showNoLocks[path] == "":
			for _, format := range []string{"text", "JSON"} {
				for _, whose := range []string{"Redlatch's", "Redisson's"} {
					if what := shownOf(path, format, whose); !e.shown[what] {
						all = append(all, what)
					}
				}
			}
		case c.Flags().Lookup("json") != nil:
			require.FileExists(t, filepath.Join("internal", "show", "testdata", path+".golden"))
			require.FileExists(t, filepath.Join("internal", "show", "testdata", path+".json.golden"))
		}
	}
	for path := range showNoLocks {
		require.Contains(t, known, path)
	}
	return all
}

// One Java process is enough for all commands that show locks, except for locks of dead
// processes.
func TestLocksOfRedissonAndOfRedlatchAreShown(t *testing.T) {
	testlevel.All(t, "a Java machine")
	t.Parallel()
	p := startJava(t, javaRelease)
	e := &coverage{shown: map[string]bool{}}
	t.Cleanup(func() { // part of the test shows no more than a part
		if !t.Failed() && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			require.Empty(t, e.missing(t))
		}
	})
	for _, part := range []struct {
		what string
		test func(*fixture, *testing.T)
	}{
		{"unlock", (*fixture).testUnlock}, // the longest first
		{"renewals", (*fixture).testRenewals},
		{"list and status", (*fixture).testListAndStatus},
		{"run", (*fixture).testRun},
		{"exporter", (*fixture).testExporter},
		{"watch", (*fixture).testWatch},
		{"watch a fair lock", (*fixture).testWatchFair},
	} {
		t.Run(part.what, func(t *testing.T) {
			t.Parallel()
			part.test(newFixture(t, e, p), t)
		})
	}
	for _, release := range javaReleases() {
		t.Run("evict, Redisson "+release, func(t *testing.T) {
			t.Parallel()
			living := p
			if release != javaRelease {
				living = startJava(t, release)
			}
			newFixture(t, e, living).testEvict(t, release)
		})
	}
}

// The check of the coverage itself.
func TestACommandWithoutCoverageIsReported(t *testing.T) {
	t.Parallel()
	e := &coverage{shown: map[string]bool{}}
	for _, command := range []string{"evict", "list", "status", "unlock", "watch"} {
		for _, format := range []string{"text", "JSON"} {
			e.record(command, format, "Redlatch's", "of "+goID.String()+":1", goID.String())
			e.record(command, format, "Redisson's", "of 0b8f3a11:57", program.OtherJavaID, program.JavaID)
		}
	}
	require.Empty(t, e.missing(t))
	evict := shownOf("evict", "JSON", "Redisson's")
	delete(e.shown, evict)
	e.record("evict", "JSON", "Redisson's", "of 0000000b:57", program.JavaID)
	require.Equal(t, []string{evict}, e.missing(t))
}
