package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader of migration.md finds each setting of Redisson there, also those that need nothing.
func TestEachSettingOfRedissonIsInTheMigrationPage(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join("testdata", "redisson-settings.txt"))
	require.NoError(t, err)
	page := sources(t, ".md")[filepath.Join("docs", "migration.md")]
	require.NotEmpty(t, page)
	found := 0
	for line := range strings.Lines(string(list)) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, "#") {
			found++
			assert.Contains(t, page, "`"+name+"`", "no row says what becomes of it")
		}
	}
	require.Greater(t, found, 90)
}

// What unlocking a lost lock throws in Java is ErrLost here, and not ErrNotHeld.
func TestTheReadmeNamesTheErrorOfAnUnlockThatComesTooLate(t *testing.T) {
	t.Parallel()
	texts := sources(t, ".md")
	for _, path := range []string{"README.md", "README.zh-CN.md"} {
		rows := 0
		for line := range strings.Lines(texts[path]) {
			if strings.HasPrefix(line, "|") && strings.Contains(line, "IllegalMonitorStateException") {
				rows++
				assert.Contains(t, line, "`redlatch.ErrLost`", path)
				assert.NotContains(t, line, "ErrNotHeld", path)
			}
		}
		assert.Equal(t, 1, rows, path)
	}
}
