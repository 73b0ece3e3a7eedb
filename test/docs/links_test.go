package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
)

var (
	mdFence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	mdHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// anchor returns GitHub's anchor for a heading.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestDocsLinksResolve(t *testing.T) {
	t.Parallel()
	anchors := map[string]map[string]bool{}
	prose := map[string]string{}
	for path, text := range sources(t, ".md") {
		prose[path] = mdFence.ReplaceAllString(text, "")
		anchors[path] = map[string]bool{}
		for _, m := range mdHeading.FindAllStringSubmatch(prose[path], -1) {
			anchors[path][anchor(m[1])] = true
		}
	}
	found := 0
	for path, text := range prose {
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			file, section, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: link to missing file %s", path, m[1])
			} else if section != "" && !anchors[target][section] {
				t.Errorf("%s: link to missing heading %s", path, m[1])
			}
		}
	}
	require.Greater(t, found, 50, "found too few links")
}

func TestDocsNameDeclaredIdentifiers(t *testing.T) {
	t.Parallel()
	declaration := regexp.MustCompile(`^(?:func |type |var |const |\t)([A-Z]\w*)`)
	folders := map[string]string{
		"redlatch": ".", "rlock": "rlock", "rfairlock": "rfairlock", "rfencedlock": "rfencedlock", "fence": "fence", "codec": "codec",
		"transport": "transport", "embedded": "embedded", "pubsub": "pubsub",
	}
	declared := map[string]map[string]bool{}
	for _, folder := range folders {
		declared[folder] = map[string]bool{}
	}
	for path, text := range sources(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(path))
		if declared[folder] == nil {
			continue
		}
		for line := range strings.Lines(text) {
			if m := declaration.FindStringSubmatch(line); m != nil {
				declared[folder][m[1]] = true
			}
		}
	}
	packageNamed := func(line string) bool {
		for name := range folders {
			if strings.Contains(line, name+".") {
				return true
			}
		}
		return false
	}
	name := regexp.MustCompile(`\b(redlatch|rlock|rfairlock|rfencedlock|fence|codec|transport|embedded|pubsub)\.([A-Z]\w*)`)
	found := 0
	for path, text := range sources(t, ".md") {
		for line := range strings.Lines(text) {
			if !packageNamed(line) {
				continue // this is faster than the regular expression alone
			}
			for _, m := range name.FindAllStringSubmatch(line, -1) {
				found++
				if !declared[folders[m[1]]][m[2]] {
					t.Errorf("%s: undeclared name %s", path, m[0])
				}
			}
		}
	}
	require.Greater(t, found, 50, "found too few names")
}

func TestDocsStateEvictionDelays(t *testing.T) {
	t.Parallel()
	seconds := map[string]string{
		"latch": fmt.Sprint(liveness.DefaultGrace.Seconds()),
		"isson": fmt.Sprint(liveness.RedissonGrace(liveness.DefaultGrace).Seconds()),
	}
	// The constant prefix makes the search several times faster.
	claim := regexp.MustCompile(`Red(latch|isson)(?:(?:'s| waiter| waiter is evicted) (?:after|within) ([0-9]+) seconds| 的在 ([0-9]+) 秒)`)
	reported := map[string]int{}
	texts := sources(t, ".md")
	for path, text := range sources(t, ".go") {
		texts[path] = strings.ReplaceAll(text, "\n//", "\n")
	}
	for path, text := range texts {
		if !strings.Contains(text, "seconds") && !strings.Contains(text, "秒") {
			continue
		}
		path = filepath.ToSlash(path)
		for _, m := range claim.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
			reported[path]++
			require.Equal(t, seconds[m[1]], m[2]+m[3], "%s: %s", path, m[0])
		}
	}
	for _, path := range []string{
		"README.md", "README.zh-CN.md", "CHANGELOG.md", "docs/fair-lock.md", "docs/migration.md",
		"docs/operations.md", "docs/quickstart.md", "rfairlock/fair.go",
	} {
		require.GreaterOrEqual(t, reported[path], 2,
			"%s must state both delays, as in \"a dead Redisson waiter after 30 seconds\"", path)
	}
}

// The modules compare their metrics with the golden lists. The metrics of the exporter do not have OpenTelemetry names.
func TestMetricsPageMatchesGoldenLists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	require.NoError(t, err)
	for list, row := range map[string]string{
		"metrics.txt":  "(?m)^\\| `(redlatch_\\w+)` \\| `(redlatch\\.[a-z_.]+)` \\| (\\w+) \\| ([^|]+) \\|",
		"exporter.txt": "(?m)^\\| `(redlatch_(?:server|exporter)_\\w+)` \\|( )(\\w+) \\| ([^|]+) \\|",
	} {
		var documented []metric
		for _, m := range regexp.MustCompile(row).FindAllStringSubmatch(string(page), -1) {
			labels := strings.NewReplacer("`", "", ",", "").Replace(m[4])
			if labels == "none" {
				labels = "-"
			}
			documented = append(documented, metric{name: m[1], kind: m[3], labels: labels, otel: strings.TrimSpace(m[2])})
		}
		require.Equal(t, golden(t, list), documented, list)
	}
}

type metric struct{ name, kind, labels, otel string }

func golden(t *testing.T, file string) (list []metric) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "observability", file))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "redlatch_") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), " | ")
		m := metric{name: f[0], kind: f[1], labels: f[3]}
		if len(f) == 6 {
			m.otel = f[4]
		}
		list = append(list, m)
	}
	require.Greater(t, len(list), 10, "found too few metrics")
	return list
}
