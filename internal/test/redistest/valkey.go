package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// valkeyEnv names the valkey-server program, by name or path.
const valkeyEnv = "REDLATCH_VALKEY"

// valkeyKept is where scripts/redis-server.sh keeps the program that it fetched,
// below the module's folder.
var valkeyKept = filepath.Join(".servers", "valkey", "usr", "bin", "valkey-server")

// StartValkey starts an empty valkey-server for this test, as Start does, with the
// program of ValkeyBinary.
func StartValkey(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	path := ValkeyBinary(tb)
	s := Start(tb, append(opts, WithBinary(path))...)
	if s.Name() != "valkey" {
		tb.Fatalf("redistest: %s is no Valkey but %s %s", path, s.Name(), s.Version())
	}
	return s
}

// ValkeyBinary returns the path of the valkey-server program for WithBinary: the one
// that the environment variable REDLATCH_VALKEY names, else the one that `make
// setup` has fetched, else valkey-server from PATH. Where there is none, the test is
// skipped, unless CI=true or a program is named: then it fails.
func ValkeyBinary(tb testing.TB) string {
	tb.Helper()
	name := os.Getenv(valkeyEnv)
	path, err := findValkey(name)
	switch {
	case err == nil:
	case testing.Short() || name == "" && os.Getenv("CI") != "true":
		tb.Skipf("NOT RUN ON VALKEY: %v", err)
	default:
		tb.Fatalf("redistest: %v", err)
	}
	return path
}

// FindValkey returns the path that ValkeyBinary does, without a test that needs it, or an
// error that says what to do.
func FindValkey() (path string, err error) { return findValkey(os.Getenv(valkeyEnv)) }

// moreKept is where scripts/more-servers.sh keeps programs, each in a folder that is named
// for it and its version.
var moreKept = filepath.Join(".servers", "more")

// MoreServers returns the paths of the servers of other releases that scripts/more-servers.sh
// has fetched, none where it has not run.
func MoreServers() []string {
	folder := upwards(moreKept)
	if folder == "" {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*", "*-server")) // the pattern is fine
	return paths
}

// findValkey returns the program's path. Links are kept as they are: the program
// is one that looks at its own name.
func findValkey(name string) (string, error) {
	if name == "" {
		name = "valkey-server"
		if kept := upwards(valkeyKept); kept != "" {
			name = kept
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no Valkey to test with: %w; run `make setup`, or set %s to its path", err, valkeyEnv)
	}
	return path, nil
}

// upwards looks for a file of the module from the test's folder upwards, and returns
// its path, "" if there is none.
func upwards(name string) string {
	folder, err := filepath.Abs(".")
	if err != nil {
		return ""
	}
	for {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}
