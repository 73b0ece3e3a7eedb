package program

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden holds that text is what the golden file says, but for what differs from run
// to run; see tidy. With -update it writes the file.
func Golden(t *testing.T, name, text string, ids ...string) {
	t.Helper()
	got := tidy(text, ids)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), got)
}

// JavaID stands in golden files for the UUID of a Java client, which is random, and
// otherJavaID for that of a second one.
const (
	JavaID      = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	OtherJavaID = "c4d1f0a6-5b0e-4c7e-9a52-6e215a90c7e2"
)

// What differs from run to run, except UUIDs. Blanks that make a column are kept so that
// the column stays as wide as it was.
var untidy = []struct {
	what *regexp.Regexp
	with func(found string) string
}{
	{regexp.MustCompile(`(0b8f3a11|5a90c7e2):\d+(    +)?`), func(s string) string { // threads of Java
		thread := s[:len("0b8f3a11:")] + "57"
		if !strings.HasSuffix(s, " ") {
			return thread
		}
		return fmt.Sprintf("%-*s", len(s), thread)
	}},
	{regexp.MustCompile(`"(at|client_started)": ?"[^"]*"`), func(s string) string { return s[:strings.Index(s, ":")] + `:"TIME"` }},
	{regexp.MustCompile(`"(ttl_ms|deadline_in_ms|left_ms)": ?[1-9]\d*`), func(s string) string { return s[:strings.Index(s, ":")] + ":MS" }},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d(\.\d\d\d)?Z`), func(string) string { return "TIME" }},
	{regexp.MustCompile(`since \S+Z`), func(string) string { return "since TIME" }},
	{regexp.MustCompile(`(?m)  +\d[\dhms.]*[hms] +[-\d]+$`), rightAligned},
	{regexp.MustCompile(`   +\d[\dhms.]*[hms]\b`), func(s string) string { return fmt.Sprintf("%*s", len(s), "TIME") }},
	{regexp.MustCompile(` \d[\dhms.]*[hms]\b`), func(string) string { return " TIME" }},
}

// note finds the note of status about a queue. Where its lines end depends on how long the
// times in it are.
var note = regexp.MustCompile(`(?m)^  note   .*\n(         .*\n)*`)

// tidy replaces what differs from run to run. The ids are those of Java clients.
func tidy(text string, ids []string) string {
	for i, id := range ids {
		as := []string{JavaID, OtherJavaID}[i]
		text = strings.ReplaceAll(text, id, as)
		text = strings.ReplaceAll(text, id[len(id)-8:], as[len(as)-8:])
	}
	for _, u := range untidy {
		text = u.what.ReplaceAllStringFunc(text, u.with)
	}
	return note.ReplaceAllStringFunc(text, func(s string) string {
		return output.Indented("note", strings.TrimPrefix(s, "  note"))
	})
}

// Fits holds that every line of an output for people fits a terminal.
func Fits(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	Narrow(t, text)
}

// rightAligned puts TIME in place of a time in the last column but one of a table,
// whose width is the same whatever the time.
func rightAligned(s string) string {
	words := strings.Fields(s)
	end := strings.Index(s, words[0]) + len(words[0])
	return fmt.Sprintf("%*s", end, "TIME") + s[end:]
}

// Words joins what was broken into lines to fit a terminal.
func Words(text string) string { return strings.Join(strings.Fields(text), " ") }

// Narrow holds that text fits a terminal, and leaves its last column empty: a full line
// would make some terminals wrap. Commands are not broken, so that they can be pasted.
func Narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "`redlatch ") {
			continue
		}
		require.Less(t, sanitize.Width(strings.TrimSuffix(line, "\n")), output.Columns, line)
	}
}
