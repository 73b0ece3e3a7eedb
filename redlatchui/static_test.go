package redlatchui_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// ownLines is how many lines the page's own JavaScript has at most.
const ownLines = 300

// What others wrote is served as its package has it, with its licence, and all else is few lines.
func TestWhatOthersWroteIsServedAsTheyPublishedIt(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join("page", "vendored.txt"))
	require.NoError(t, err)
	page := open(t, redistest.Shared(t), redlatchui.Options{})
	listed := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line) // package, version, its file, licence, checksum, file
		require.Len(t, fields, 6, line)
		status, text := get(t, page, "/"+fields[5])
		require.Equal(t, 200, status, line)
		sum := sha256.Sum256([]byte(text))
		require.Equal(t, fields[4], hex.EncodeToString(sum[:]), line)
		listed[filepath.Base(fields[5])] = true
	}
	require.True(t, listed["idiomorph.js"] && listed["idiomorph.LICENSE.txt"], "%v", listed)
	files, err := os.ReadDir(filepath.Join("page", "static"))
	require.NoError(t, err)
	own := 0
	for _, f := range files {
		if listed[f.Name()] || filepath.Ext(f.Name()) != ".js" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("page", "static", f.Name()))
		require.NoError(t, err)
		own += bytes.Count(text, []byte("\n"))
	}
	require.Positive(t, own)
	require.LessOrEqual(t, own, ownLines)
}

var rowID = regexp.MustCompile(`<(?:tr|li) id="([^"]*)"`)

// Owners that are shown alike, an owner that is queued twice, and one lock that a client holds as
// two owners: an update finds each row by an id of its own, which is no text of others.
func TestEachRowHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	for _, owner := range []string{"a\x1b", "a\x1c", "a\x1b", `"><i id="x">`, program.RedissonOwner} {
		program.Enqueue(t, s, "job", owner, time.Hour)
	}
	s.Do(t, "HSET", "books", "mode", "read", javaA+":1", 1, javaA+":2", 1)
	for i := range 3 {
		s.Do(t, "HSET", fmt.Sprintf("orders:%d", i), javaA+":1", 1)
	}
	page := open(t, s, redlatchui.Options{Every: 100 * time.Millisecond})
	says(t, page, "/", "5 locks")
	for address, rows := range map[string]int{
		"/": 5 + 1, "/?by=prefix": 2, "/lock?name=job": 5 + 1 + 1, "/lock?name=books": 2 + 2, "/who": 5, "/who?client=" + javaA: 5 + 1,
	} {
		_, text := get(t, page, address)
		seen := map[string]bool{}
		for _, id := range rowID.FindAllStringSubmatch(text, -1) {
			require.Regexp(t, `^k[0-9a-f]{32}(-\d+)?$`, id[1], address)
			require.False(t, seen[id[1]], "%s: %s", address, text)
			seen[id[1]] = true
		}
		require.Len(t, seen, rows, "%s: %s", address, textOf(text))
	}
}

// A request that asks for no content is not held as a stream is, and costs the server nothing.
func TestHEADOfAStreamIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page := open(t, s, redlatchui.Options{})
	for _, path := range []string{"/events", "/events?name=a", "/events?about=server"} {
		answered := make(chan *http.Response, 1)
		go func() { answered <- answer(page, httptest.NewRequest(http.MethodHead, "http://localhost"+path, nil)) }()
		select {
		case got := <-answered:
			require.Equal(t, 200, got.StatusCode)
			require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
		case <-time.After(10 * time.Second):
			t.Fatal("it is held")
		}
	}
	require.Zero(t, s.CommandStats(t)["scan"])
}
