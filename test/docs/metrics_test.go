package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The golden list of metrics is in a file, with which the modules compare what they report, and
// in a table for readers.
func TestGoldenListIsWhatThePageSays(t *testing.T) {
	t.Parallel()
	list := golden(t)
	require.Greater(t, len(list), 10, "the list was not found: the check itself is broken")

	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(redlatch_\\w+)` \\| `(redlatch\\.[a-z_.]+)` \\| (\\w+) \\| ([^|]+) \\|")
	var said []metric
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		labels := strings.ReplaceAll(strings.ReplaceAll(m[4], "`", ""), ",", "")
		if labels == "none" {
			labels = "-"
		}
		said = append(said, metric{name: m[1], kind: m[3], labels: labels, otel: m[2]})
	}
	require.Equal(t, list, said)
}

// metric is a row of the golden list.
type metric struct{ name, kind, labels, otel string }

func golden(t *testing.T) (list []metric) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "observability", "metrics.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, " | ")
		require.Len(t, f, 6, "%s", line)
		list = append(list, metric{name: f[0], kind: f[1], labels: f[3], otel: f[4]})
	}
	return list
}

// Those of the exporter have no names of OpenTelemetry.
func TestGoldenListOfTheExporterIsWhatThePageSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "observability", "exporter.txt"))
	require.NoError(t, err)
	var list []metric
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "redlatch_") {
			require.Len(t, f, 4, line)
			list = append(list, metric{name: f[0], kind: f[1], labels: f[3]})
		}
	}
	require.Greater(t, len(list), 10, "the list was not found: the check itself is broken")

	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(redlatch_(?:server|exporter)_\\w+)` \\| (\\w+) \\| ([^|]+) \\|")
	var said []metric
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		labels := strings.ReplaceAll(strings.ReplaceAll(m[3], "`", ""), ",", "")
		if labels == "none" {
			labels = "-"
		}
		said = append(said, metric{name: m[1], kind: m[2], labels: labels})
	}
	require.Equal(t, list, said)
}
