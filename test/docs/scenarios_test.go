package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of the 45 scenarios, these wait for kinds of locks and of servers that are not here.
var laterScenarios = map[int]string{
	12: "fencing tokens", 45: "locks of several names",
}

// Each scenario has a row with a test, or with the reason why it does not apply. That
// the tests exist holds TestEveryTestNamedInTheDocumentsExists.
func TestEveryScenarioHasATestOrAReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Scenarios\n")
	require.True(t, found, "the section has gone")
	rows := map[int][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| U(\d+) \|(.*)\|$`).FindAllStringSubmatch(section, -1) {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		assert.NotContains(t, rows, n, "U%d stands there twice", n)
		rows[n] = strings.Split(row[2], "|")
	}
	test := regexp.MustCompile("`Test[A-Z]\\w*`")
	for n := 1; n <= 45; n++ {
		if laterScenarios[n] != "" {
			assert.NotContains(t, rows, n, "U%d is here: take it from the list", n)
			continue
		}
		if !assert.Len(t, rows[n], 3, "U%d has no row", n) {
			continue
		}
		does, tests := strings.TrimSpace(rows[n][1]), rows[n][2]
		reason, without := strings.CutPrefix(does, "does not apply: ")
		assert.NotEmpty(t, does, "U%d: what does it do?", n)
		assert.Equal(t, without, !test.MatchString(tests), "U%d has neither a test nor a reason, or both", n)
		assert.NotEmpty(t, reason, "U%d: why?", n)
	}
}
