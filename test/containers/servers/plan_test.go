package servers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// names returns the names of kinds.
func names(kinds []Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

func TestPlanUsesInstalledPrograms(t *testing.T) {
	t.Setenv("CI", "true")
	t.Setenv(Variable, "")
	plan, err := Choose()
	require.NoError(t, err)
	assert.Equal(t, []string{
		"redis-server", "valkey-server", "redis-server-6.2.14", "redis-server-8.2.3", "valkey-server-9.1.2",
	}, names(plan.Servers))
	assert.Equal(t, []string{"redis-server", "valkey-server"}, names(plan.Clusters))
	assert.False(t, plan.Containers)
	assert.Regexp(t, `^installed programs: redis-server \d+\.\d+\.\d+, valkey-server \d+\.\d+\.\d+, `, plan.Line)
	assert.True(t, Demanded())
}

func TestContainerPlanNeedsNoProgram(t *testing.T) {
	t.Setenv("CI", "true")
	t.Setenv(Variable, "docker")
	t.Setenv("PATH", "/nowhere")
	plan, err := Choose()
	require.NoError(t, err)
	assert.Equal(t, []string{"redis:6.2", "redis:7.2", "redis:8", "valkey/valkey:8"}, names(plan.Servers))
	assert.Equal(t, []string{"redis:6.2", "redis:8", "valkey/valkey:8"}, names(plan.Clusters))
	assert.True(t, plan.Containers)
	assert.Equal(t, "containers: redis:6.2, redis:7.2, redis:8, valkey/valkey:8; clusters of redis:6.2, redis:8, valkey/valkey:8", plan.Line)
}

func TestUnknownChoiceIsRejected(t *testing.T) {
	t.Setenv(Variable, "moon")
	_, err := Choose()
	require.EqualError(t, err, "invalid REDLATCH_ITEST=moon: must be docker or local")
}

func TestMissingProgramIsReportedAndFailsInCI(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv(Variable, "")
	t.Setenv("REDLATCH_VALKEY", "/nowhere/valkey-server")
	plan, err := Choose()
	require.NoError(t, err)
	assert.Equal(t, []string{"redis-server"}, names(plan.Clusters))
	assert.Contains(t, plan.Line, "; no Valkey to test with")
	assert.False(t, Demanded())

	t.Setenv("CI", "true")
	_, err = Choose()
	require.ErrorContains(t, err, "no Valkey to test with")
	assert.True(t, Demanded())

	t.Setenv("CI", "")
	t.Setenv("PATH", "/nowhere")
	_, err = Choose()
	require.ErrorContains(t, err, "no server to test on: no server")
	require.ErrorContains(t, err, "no Valkey to test with")
}

func TestClusterWithOtherAddressesIsRejected(t *testing.T) {
	t.Parallel()
	var outside []string
	for _, addr := range redistest.StartCluster(t, 3, 1).Addrs() {
		outside = append(outside, redistest.NewProxy(t, addr).Addr())
	}
	_, err := survey(t, outside)
	require.ErrorContains(t, err, "redirects clients to 127.0.0.1:")
}
