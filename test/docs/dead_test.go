package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
)

// There is one number for each kind of waiter, the same on every page.
func TestDocumentsNameTheSecondsAfterWhichTheDeadAreTakenOut(t *testing.T) {
	t.Parallel()
	seconds := map[string]string{
		"Redlatch": fmt.Sprint(liveness.DefaultGrace.Seconds()),
		"Redisson": fmt.Sprint(liveness.RedissonGrace(liveness.DefaultGrace).Seconds()),
	}
	claim := regexp.MustCompile(`(Redlatch|Redisson)(?:'s (?:dead |waiters )?(?:out |are taken out )?after| 的在) ([0-9 to到]+)(?: seconds| 秒)`)
	reported := map[string]int{}
	texts := sources(t, ".md")
	for path, text := range sources(t, "doc.go") {
		texts[path] = strings.ReplaceAll(text, "\n//", "\n")
	}
	for path, text := range texts {
		path = filepath.ToSlash(path)
		for _, m := range claim.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
			reported[path]++
			require.Equal(t, seconds[m[1]], strings.TrimSpace(m[2]), "%s: %s", path, m[0])
		}
	}
	for _, path := range []string{
		"README.md", "README.zh-CN.md", "CHANGELOG.md", "docs/fair-lock.md", "docs/migration.md",
		"docs/operations.md", "docs/quickstart.md", "rfairlock/doc.go",
	} {
		require.GreaterOrEqual(t, reported[path], 2, "%s must say it of both kinds, as in \"Redisson's after 30 seconds\"", path)
	}
}
