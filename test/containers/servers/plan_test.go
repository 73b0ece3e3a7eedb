package servers

import (
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names returns what the kinds are called.
func names(kinds []Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// settings are the environment that a plan is made of, and no other.
func settings(t *testing.T, ci, asked, docker string) {
	t.Helper()
	t.Setenv("CI", ci)
	t.Setenv(Variable, asked)
	t.Setenv("DOCKER_HOST", docker)
}

func TestWithoutAnEngineThePlanIsTheInstalledPrograms(t *testing.T) {
	settings(t, "true", "", silent(t))
	plan, err := Choose(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{
		"redis-server", "valkey-server", "redis-server-6.2.14", "redis-server-8.2.3", "valkey-server-9.1.2",
	}, names(plan.Servers))
	assert.Equal(t, []string{"redis-server", "valkey-server"}, names(plan.Clusters))
	assert.False(t, plan.Containers)
	assert.Regexp(t, `^installed programs: redis-server \d+\.\d+\.\d+, valkey-server \d+\.\d+\.\d+, .*, since unix://\S+ did not answer within 300ms$`, plan.Line)

	settings(t, "true", "local", answering(t, http.HandlerFunc(pong)))
	plan, err = Choose(t.Context())
	require.NoError(t, err)
	assert.Contains(t, plan.Line, ", since REDLATCH_ITEST=local", "the engine is not asked")
	assert.True(t, Demanded())
}

func TestAPlanThatIsAskedForIsMadeOrRefused(t *testing.T) {
	settings(t, "", "docker", "unix:///nowhere/docker.sock")
	_, err := Choose(t.Context())
	require.ErrorContains(t, err, "REDLATCH_ITEST=docker, but there is no socket of a Docker engine: unix:///nowhere/docker.sock")
	settings(t, "", "moon", "unix:///nowhere/docker.sock")
	_, err = Choose(t.Context())
	require.ErrorContains(t, err, "REDLATCH_ITEST=moon: it is docker, local, or not set")
}

func TestAProgramThatIsMissingIsSaidAndFailsInCI(t *testing.T) {
	settings(t, "", "", "unix:///nowhere/docker.sock")
	t.Setenv("REDLATCH_VALKEY", "/nowhere/valkey-server")
	plan, err := Choose(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"redis-server"}, names(plan.Clusters))
	assert.Contains(t, plan.Line, "; no Valkey to test with")
	assert.False(t, Demanded())

	t.Setenv("CI", "true")
	_, err = Choose(t.Context())
	require.ErrorContains(t, err, "no Valkey to test with")
	assert.True(t, Demanded())

	t.Setenv("CI", "")
	t.Setenv("PATH", "/nowhere")
	_, err = Choose(t.Context())
	require.ErrorContains(t, err, "nothing real to test on: there is no socket of a Docker engine: unix:///nowhere/docker.sock; no server")
	require.ErrorContains(t, err, "no Valkey to test with")
}

func TestAnEngineThatAnswersIsUsed(t *testing.T) {
	host := newDocker(t, "127.0.0.1").host
	settings(t, "true", "", host)
	t.Setenv("PATH", "/nowhere") // no program is needed
	plan, err := Choose(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"redis:6.2", "redis:7.2", "redis:8", "valkey/valkey:8"}, names(plan.Servers))
	assert.Equal(t, []string{"redis:6.2", "redis:8", "valkey/valkey:8"}, names(plan.Clusters))
	assert.True(t, plan.Containers)
	assert.Equal(t, "containers of the Docker engine at "+host+": redis:6.2, redis:7.2, redis:8, valkey/valkey:8; "+
		"clusters of redis:6.2, redis:8, valkey/valkey:8", plan.Line)

	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	_, err = contained(t.Context(), engine{host: host})
	require.NoError(t, err)
	assert.Equal(t, host, os.Getenv("DOCKER_HOST"), "for the library that starts containers")
}

// The addresses in a cluster's redirections are valid on this machine only.
func TestAnEngineElsewhereRunsNoClusters(t *testing.T) {
	settings(t, "true", "", newDocker(t, "build.example.com").host)
	plan, err := Choose(t.Context())
	require.NoError(t, err)
	assert.Contains(t, names(plan.Servers), "redis:6.2")
	assert.Equal(t, []string{"redis-server", "valkey-server"}, names(plan.Clusters))
	assert.Contains(t, plan.Line, "; clusters of installed programs: redis-server ")
	assert.Contains(t, plan.Line, "is reached at build.example.com")
}
