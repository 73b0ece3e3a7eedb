package main

import (
	"flag"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
)

// tellsOfNoLock are the commands that show no lock of anybody else's, and why. All
// others are shown to tell people and programs of locks of both languages.
var tellsOfNoLock = map[string]string{
	"run":    "what it prints is COMMAND's, but for run-held.golden",
	"doctor": "it examines the server, with locks of its own that are gone at once",
	"bench":  "it measures with locks of its own that are gone at once",
	"demo":   "it has processes and locks of its own; its summary is checked line by line",
	"serve":  "it is a server, and prints its address",
}

// exhibition is what commands were seen to tell, in one run, of locks of a live
// Redisson and of Redlatch. Golden files alone would not say who made the locks.
type exhibition struct {
	mu    sync.Mutex
	shown map[string]bool
}

// show compares what a command told with the golden file, whose name begins with the
// command's, and notes of whose locks that was: ids tell, and those of Java are random.
func (s *scene) show(t *testing.T, file, text string) {
	t.Helper()
	command := file[:strings.IndexAny(file+"-", "-.")]
	format := "text"
	if strings.HasSuffix(file, ".json") {
		format = "JSON"
	} else {
		program.Fits(t, text)
	}
	s.exhibition.note(command, format, "Redlatch's", text, goID.String())
	s.exhibition.note(command, format, "Redisson's", text, s.ids...)
	program.Golden(t, file, text, s.ids...)
}

// note takes a text in that tells of a lock of one of the clients given, or does not.
func (e *exhibition) note(command, format, whose, text string, ids ...string) {
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

// missing returns what nobody has seen.
func (e *exhibition) missing(t *testing.T) (all []string) {
	t.Helper()
	known := commands(t)
	for path, c := range known {
		switch {
		case tellsOfNoLock[path] == "":
			for _, format := range []string{"text", "JSON"} {
				for _, whose := range []string{"Redlatch's", "Redisson's"} {
					if what := shownOf(path, format, whose); !e.shown[what] {
						all = append(all, what)
					}
				}
			}
		case c.Flags().Lookup("json") != nil:
			require.FileExists(t, filepath.Join(path, "testdata", path+".golden"))
			require.FileExists(t, filepath.Join(path, "testdata", path+".json.golden"))
		}
	}
	for path := range tellsOfNoLock {
		require.Contains(t, known, path)
	}
	return all
}

// One Java process is enough for all who look at locks, but for those of the dead.
func TestLocksOfRedissonAndOfRedlatchAreShown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a server and a Java machine")
	}
	p := startJava(t, javaRelease)
	e := &exhibition{shown: map[string]bool{}}
	t.Cleanup(func() { // part of the test shows no more than a part
		if !t.Failed() && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			require.Empty(t, e.missing(t))
		}
	})
	for _, part := range []struct {
		what string
		test func(*scene, *testing.T)
	}{
		{"unlock", (*scene).testUnlock}, // the longest first
		{"renewals", (*scene).testRenewals},
		{"list and status", (*scene).testListAndStatus},
		{"run", (*scene).testRun},
		{"watch", (*scene).testWatch},
		{"watch a fair lock", (*scene).testWatchFair},
	} {
		t.Run(part.what, func(t *testing.T) {
			t.Parallel()
			part.test(newScene(t, e, p), t)
		})
	}
	for _, release := range javaReleases() {
		t.Run("evict, Redisson "+release, func(t *testing.T) {
			t.Parallel()
			living := p
			if release != javaRelease {
				living = startJava(t, release)
			}
			newScene(t, e, living).testEvict(t, release)
		})
	}
}

// The check of the exhibition itself.
func TestACommandThatNobodyHasSeenIsMissed(t *testing.T) {
	t.Parallel()
	e := &exhibition{shown: map[string]bool{}}
	for _, command := range []string{"evict", "list", "status", "unlock", "watch"} {
		for _, format := range []string{"text", "JSON"} {
			e.note(command, format, "Redlatch's", "of "+goID.String()+":1", goID.String())
			e.note(command, format, "Redisson's", "of 0b8f3a11:57", program.OtherJavaID, program.JavaID)
		}
	}
	require.Empty(t, e.missing(t))
	evict := shownOf("evict", "JSON", "Redisson's")
	delete(e.shown, evict)
	e.note("evict", "JSON", "Redisson's", "of 0000000b:57", program.JavaID)
	require.Equal(t, []string{evict}, e.missing(t))
}
