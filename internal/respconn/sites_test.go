package respconn_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sites contains the only files, apart from tests and benchmarks, that make connections.
var sites = map[string]string{
	"internal/respconn/dial.go":                  "the constructors",
	"adapter/goredis/dial.go":                    "for NewConn of the library, which guards it after the handshake of go-redis",
	"adapter/rueidis/rueidis.go":                 "for NewConn of the library, which guards it",
	"embedded/server.go":                         "in memory, to a server of this process",
	"examples/jobs/main.go":                      "the example's own data, not a lock",
	"internal/tool/connect/probe.go":             "reads at most 256 bytes, and does not parse them",
	"cmd/redlatch/internal/hold/control_unix.go": "no server: the process that holds the lock",
	"cmd/redlatch/internal/hold/run.go":          "no server: systemd",
}

var (
	comment = regexp.MustCompile(`(?m)//.*$`)
	makes   = regexp.MustCompile(`[^.\w]((redis|redigo)\.(Dial\w*|New(Conn|Client|FailoverClient|ClusterClient|UniversalClient))|rueidis\.NewClient|` +
		`tls\.(Client|Dial\w*)|net\.Dial\w*)\b`)
	// Each match contains one of the strings in named, which are faster to find.
	named   = []string{"redis.Dial", "redis.New", "redigo.Dial", "redigo.New", "rueidis.NewClient", "tls.Client", "tls.Dial", "net.Dial"}
	skipped = []string{"bench", "internal/test", "scripts", "test", "tools"}
)

func TestConnectionsAreDialedInOnePlace(t *testing.T) {
	t.Parallel()
	const root = "../.."
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(skipped, name) || strings.HasPrefix(name, ".") && name != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(named, func(name string) bool { return bytes.Contains(text, []byte(name)) }) && makes.Match(comment.ReplaceAll(text, nil)) {
				found[name] = true
			}
		}
		return nil
	}))
	for name := range found {
		require.Contains(t, sites, name, "use respconn.Dialer, or redlatch.NewConn for a connection of a caller's")
	}
	require.Len(t, found, len(sites))
}
