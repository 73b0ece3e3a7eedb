package testlevel_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// slow is set for the process in which a test has no time left.
const slow = "REDLATCH_DRAWN_SLOWLY"

func TestNoSequenceIsLeftOutWhenTimeRunsOut(t *testing.T) {
	if os.Getenv(slow) != "" {
		rapid.Check(testlevel.Drawn{T: t}, func(*rapid.T) { time.Sleep(50 * time.Millisecond) })
		return
	}
	testlevel.All(t, "it waits for two seconds until a test has no time left")
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=2s", "-rapid.checks=1000")
	cmd.Env = append(os.Environ(), slow+"=1")
	said, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", said)
	assert.Contains(t, string(said), "test timed out")
}

func TestEveryTestThatDrawsIsDrawn(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	drawn := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		call := []byte("rapid." + "Check(")
		all, right := bytes.Count(text, call), bytes.Count(text, append(call, "testlevel.Drawn{T: t}, "...))
		assert.Equal(t, all, right, "%s draws from a bare *testing.T", path)
		drawn += right
		return err
	}))
	assert.Greater(t, drawn, 5)
}
