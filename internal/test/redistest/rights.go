package redistest

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manual is the operator's manual, below the module's folder.
var manual = filepath.Join("docs", "operations.md")

// Password is the password of the users that Rights makes.
const Password = "password"

// Manual returns the operator's manual, docs/operations.md.
func Manual(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(upwards(manual))
	if err != nil {
		tb.Fatalf("redistest: the manual: %v", err)
	}
	return string(text)
}

// Rights returns the arguments of the ACL command that the operator's manual gives
// under the heading need, word by word: "SETUSER", the user, and what the user gets.
// The end of the test comes when the manual has no such line.
func Rights(tb testing.TB, need string) []any {
	tb.Helper()
	_, rest, found := strings.Cut(Manual(tb), "\n### "+need+"\n")
	rest, _, _ = strings.Cut(rest, "\n#")
	_, rest, shown := strings.Cut(rest, "```\nACL ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found || !shown {
		tb.Fatalf("redistest: %s has no line for %q", manual, need)
	}
	var args []any
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	return args
}

// GiveRights gives the manual's user of these needs what the manual says, and then
// more rights, or fewer. It returns the user's URL on this server.
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

// UserURL returns the server's address as a redis:// URL with a user whose password
// is Password.
func (s *Server) UserURL(user string) string {
	return (&url.URL{Scheme: "redis", Host: s.Addr(), User: url.UserPassword(user, Password)}).String()
}

// GiveLooks makes the manual's user for people who look, who may only read, and returns the
// user's URL on this server.
func (s *Server) GiveLooks(tb testing.TB) string {
	tb.Helper()
	_, command, found := strings.Cut(Manual(tb), "\nACL SETUSER onlooker ")
	command, _, ends := strings.Cut(command, "```")
	if !found || !ends {
		tb.Fatalf("redistest: %s has no user for people who look", manual)
	}
	args := []any{"SETUSER", "onlooker"}
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	s.Do(tb, "ACL", args...)
	return s.UserURL("onlooker")
}
