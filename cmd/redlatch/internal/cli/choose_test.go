package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli/config"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// given returns the result of parsing flags, with REDIS_URL and a config file of contexts.
func given(t *testing.T, flags, url string) *Globals {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`contexts:
  open: {redis: "redis://h"}
  secure: {redis: "rediss://h"}
  skips: {redis: "redis://h", tls-insecure-skip-verify: true}
`), 0o600))
	t.Setenv(config.PathEnv, path)
	t.Setenv(contextEnv, "")
	t.Setenv(urlEnv, url)
	t.Setenv(passwordEnv, "sesame")
	g, root := &Globals{}, &cobra.Command{}
	g.register(root)
	require.NoError(t, root.ParseFlags(strings.Fields(flags)))
	return g
}

func TestSkipVerifyFalseKeepsTLS(t *testing.T) {
	for flags, env := range map[string][]string{
		"--context=skips":     {"REDLATCH_CONTEXT=skips", "REDIS_URL=rediss://h:6379", "REDIS_PASSWORD="},
		"--context=secure":    {"REDLATCH_CONTEXT=secure", "REDIS_URL=rediss://h", "REDIS_PASSWORD="},
		"--context=open":      {"REDLATCH_CONTEXT=", "REDIS_URL=rediss://h:6379", "REDIS_PASSWORD="},
		"--redis=redis://h/1": {"REDIS_URL=rediss://h:6379/1"},
	} {
		g := given(t, flags+" --tls-insecure-skip-verify=false", "")
		set, err := g.Settings(t.Context())
		require.NoError(t, err, flags)
		require.True(t, strings.HasPrefix(set.Address, "rediss://"), "%s connects to %s", flags, set.Address)
		require.Equal(t, connect.TLS{}, set.TLS, "%s does not verify the certificate", flags)
		require.Equal(t, env, g.Environment(), flags)
	}
}

// Commands that run and hold start must not send REDIS_PASSWORD to a server for which it was not used.
func TestEnvironmentClearsPasswordOfOtherServer(t *testing.T) {
	for _, c := range []struct {
		url, flags string
		want       []string
	}{
		{"", "--redis=redis://h", []string{"REDIS_URL=redis://h"}},
		{"", "--redis=redis://h --password-file=/x", []string{"REDIS_URL=redis://h", "REDIS_PASSWORD="}},
		{"redis://app", "--redis=redis://h --password-file=/x", nil},
		{"", "--redis=redis://:p@h", nil},
		{"", "--context=open", []string{"REDLATCH_CONTEXT=open", "REDIS_URL=redis://h", "REDIS_PASSWORD="}},
		{"redis://app", "--context=open", []string{"REDLATCH_CONTEXT=open"}},
	} {
		require.Equal(t, c.want, given(t, c.flags, c.url).Environment(), c)
	}
}

func TestAddressWithoutPasswordIsValid(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis://u:p@h/1": "redis://h:6379/1",
		"redis-sentinel://h/m?sentinel_user=s&sentinel_password=q": "redis-sentinel://h:26379/m",
		"redis-cluster://u:p@h?sharded_pubsub=off":                 "redis-cluster://h:6379?sharded_pubsub=off",
	} {
		got, _ := withoutPassword(address)
		require.Equal(t, want, got)
		_, err := redisurl.Parse(got)
		require.NoError(t, err)
	}
}
