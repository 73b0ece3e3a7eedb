package containers

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// again runs this program on a machine that has neither Docker nor a server.
func again(t *testing.T, env ...string) (output string, passed bool) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.v", "-test.run", "^(TestOnOneServer|TestInACluster)$")
	cmd.Env = append([]string{
		"PATH=/nowhere", "DOCKER_HOST=unix:///nowhere/docker.sock", "REDLATCH_VALKEY=/nowhere/valkey-server",
	}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestWithoutAnyServerItFailsWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it starts programs")
	}
	for _, env := range []string{"CI=true", "REDLATCH_ITEST=docker", "REDLATCH_ITEST=local", "REDLATCH_ITEST=moon"} {
		out, passed := again(t, env)
		assert.False(t, passed, env)
		assert.Contains(t, out, "itest: NOT RUN: ", env)
	}
}

func TestWithoutAnyServerItIsSkippedElsewhereAndSaysWhy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it starts programs")
	}
	out, passed := again(t)
	assert.True(t, passed, out)
	for _, says := range []string{
		"itest: NOT RUN: nothing real to test on: there is no socket of a Docker engine: unix:///nowhere/docker.sock; no server",
		"--- SKIP: TestOnOneServer", "--- SKIP: TestInACluster",
	} {
		assert.Contains(t, out, says)
	}
}
