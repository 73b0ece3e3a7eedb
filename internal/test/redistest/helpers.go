package redistest

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Tests count keys: their clients, and the programs they start, write no default label.
func init() {
	if _, set := os.LookupEnv("REDLATCH_LABEL"); !set {
		_ = os.Setenv("REDLATCH_LABEL", "")
	}
}

var keyCounter atomic.Int64

// Key returns a unique lock name that begins with the test's name and consists of letters, digits, '-' and '_'.
func Key(tb testing.TB) string {
	tb.Helper()
	const keep = 60
	name := strings.Map(plain, tb.Name())
	name = name[:min(len(name), keep)]
	return fmt.Sprintf("%s-%d-%08x", name, keyCounter.Add(1), rand.Uint32()) //nolint:gosec // uniqueness, not secrecy
}

func plain(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
		return r
	}
	return '-'
}

// Journal records log lines. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// NewJournal returns an empty journal and a logger that writes to it.
func NewJournal() (*Journal, *slog.Logger) {
	j := &Journal{}
	return j, slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write appends a line.
func (j *Journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

// Lines returns the lines that contain at least one of texts. Without texts, it returns all lines.
func (j *Journal) Lines(texts ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for _, line := range j.lines {
		if len(texts) == 0 || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
			found = append(found, line)
		}
	}
	return found
}

var manual = filepath.Join("docs", "operations.md")

// Password is the password of the users that this package creates.
const Password = "password"

// Manual returns the text of docs/operations.md.
func Manual(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(upwards(manual))
	if err != nil {
		tb.Fatalf("redistest: the manual: %v", err)
	}
	return string(text)
}

// Rights returns the arguments of the ACL command that the manual shows below the heading need.
func Rights(tb testing.TB, need string) []any {
	tb.Helper()
	_, rest, found := strings.Cut(Manual(tb), "\n### "+need+"\n")
	rest, _, _ = strings.Cut(rest, "\n#")
	_, rest, shown := strings.Cut(rest, "```\nACL ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found || !shown {
		tb.Fatalf("redistest: %s lacks a line for %q", manual, need)
	}
	var args []any
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	return args
}

// GiveRights creates the user in the manual with the rights for needs, changes it by the additional rules in more, and
// returns its URL.
func (s *Server) GiveRights(tb testing.TB, needs []string, more ...any) string {
	tb.Helper()
	user := ""
	for _, need := range needs {
		args := Rights(tb, need)
		s.Do(tb, "ACL", args...)
		user, _ = args[1].(string)
	}
	if len(more) > 0 {
		s.Do(tb, "ACL", append([]any{"SETUSER", user}, more...)...)
	}
	return s.UserURL(user)
}

// UserURL returns the URL with which a user whose password is Password connects.
func (s *Server) UserURL(user string) string {
	return (&url.URL{Scheme: "redis", Host: s.Addr(), User: url.UserPassword(user, Password)}).String()
}

// GiveLooks creates the manual's read-only user, onlooker, and returns its URL.
func (s *Server) GiveLooks(tb testing.TB) string {
	tb.Helper()
	_, command, found := strings.Cut(Manual(tb), "\nACL SETUSER onlooker ")
	command, _, ends := strings.Cut(command, "```")
	if !found || !ends {
		tb.Fatalf("redistest: %s lacks a user who only inspects", manual)
	}
	args := []any{"SETUSER", "onlooker"}
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	s.Do(tb, "ACL", args...)
	return s.UserURL("onlooker")
}
