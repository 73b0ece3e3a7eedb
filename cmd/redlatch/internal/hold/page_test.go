//go:build unix

package hold

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// snippets returns the blocks of docs/shell.md in a language.
func snippets(t *testing.T, language string) (all []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "shell.md"))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		all = append(all, found[1])
	}
	require.NotEmpty(t, all, "the check itself is broken")
	return all
}

// does runs a command line from the page and checks that its work was done once, under a lock.
func does(t *testing.T, shell, line string) {
	t.Helper()
	s := redistest.Start(t)
	cmd := command(t, shell, s.URL(), line)
	cmd.Dir = t.TempDir()
	for _, name := range []string{"deploy.sh", "report.sh", "backup.sh", "restart.sh"} {
		const work = "#!/bin/sh\nredlatch run --try \"$REDLATCH_LOCK\" -- true 2>/dev/null; echo \"$REDLATCH_LOCK $?\" >>work\n"
		require.NoError(t, os.WriteFile(filepath.Join(cmd.Dir, name), []byte(work), 0o700))
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
	require.Empty(t, string(out))
	work, err := os.ReadFile(filepath.Join(cmd.Dir, "work"))
	require.NoError(t, err)
	require.Regexp(t, `^[\w:]+ 124\n$`, string(work), "it does not run under a lock")
}

func TestPageExamplesRunUnderLock(t *testing.T) {
	t.Parallel()
	for _, text := range snippets(t, "sh") {
		for _, shell := range testlevel.Part(shells(t), 3, text) {
			does(t, shell, text)
		}
	}
	for _, text := range snippets(t, "cron") {
		for line := range strings.Lines(text) {
			fields := strings.SplitN(strings.TrimSpace(line), " ", 6) // five times and a command line
			require.Len(t, fields, 6)
			does(t, "sh", fields[5])
		}
	}
	for _, text := range snippets(t, "yaml") {
		require.NotContains(t, text, "\t")
		var words []string
		for _, found := range regexp.MustCompile(`(?m)^ +(?:command|args): (\[.*\])$`).FindAllStringSubmatch(text, -1) {
			var some []string
			require.NoError(t, json.Unmarshal([]byte(found[1]), &some))
			words = append(words, some...)
		}
		does(t, "sh", strings.ReplaceAll(strings.Join(words, " "), "$(JOB_NAME)", "job"))
	}
}

func TestUnitCommandsHoldLock(t *testing.T) {
	t.Parallel()
	for _, text := range snippets(t, "ini") {
		s := redistest.Start(t)
		line := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(redlatch .*)$`).FindStringSubmatch(text)[1]
		line = strings.Replace(line, "/usr/bin/importer", "sleep 600", 1)
		cmd := command(t, "sh", s.URL(), "exec "+line)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return s.Do(t, "DBSIZE") == int64(1) }, 10*time.Second, 50*time.Millisecond, line)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait() // the code is that of the command
		require.EqualValues(t, 0, s.Do(t, "DBSIZE"), line)
	}
}
