package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// program is an installed server program.
type program struct {
	name    string // of the file
	path    string
	version string // of the program itself, such as 8.1.1
	cli     string // the path of the command line that belongs to it; "": there is none
}

// finders look for the programs that `make setup` gets.
var finders = []func() (program, error){
	func() (program, error) { return describe(redistest.FindServer()) },
	func() (program, error) { return describe(redistest.FindValkey()) },
}

// versionText is in what programs answer to --version, such as "Redis server v=7.0.15".
var versionText = regexp.MustCompile(`\bv=(\S+)`)

// describe asks a program that was found what it is.
func describe(path string, err error) (program, error) {
	if err != nil {
		return program{}, err
	}
	text, err := exec.Command(path, "--version").Output()
	if err != nil {
		return program{}, fmt.Errorf("%s --version: %w", path, err)
	}
	p := program{name: filepath.Base(path), path: path, version: "of unknown version"}
	if found := versionText.FindSubmatch(text); found != nil {
		p.version = string(found[1])
	}
	p.cli = p.findCLI()
	return p, nil
}

// cliName is what the command line is called: redis-cli for a redis-server.
func (p program) cliName() string { return strings.TrimSuffix(p.name, "-server") + "-cli" }

// findCLI looks next to the server, which may be of another version than that in PATH, and
// then there.
func (p program) findCLI() string {
	beside := filepath.Join(filepath.Dir(p.path), p.cliName())
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	path, err := exec.LookPath(p.cliName())
	if err != nil {
		return "" // the plan reports it
	}
	return path
}

// String says what it is, for the plan's line.
func (p program) String() string { return strings.TrimSuffix(p.name, "-"+p.version) + " " + p.version }

// more returns the programs of other releases, and an error when there are none.
func more() ([]program, error) {
	var all []program
	for _, path := range redistest.MoreServers() {
		p, err := describe(path, nil)
		if err != nil {
			return nil, err
		}
		p.name += "-" + p.version
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, errors.New("no servers of other releases: run scripts/more-servers.sh")
	}
	return all, nil
}

func (p program) kind() Kind {
	return Kind{
		Name: p.name,
		start: func(tb testing.TB) string {
			tb.Helper()
			return redistest.Start(tb, redistest.WithBinary(p.path)).Addr()
		},
		cluster: p.startCluster,
	}
}

// startCluster starts a cluster of the program, by the script that containers run.
func (p program) startCluster(tb testing.TB) []string {
	tb.Helper()
	return onFreePorts(tb, func(ports []string) error {
		tb.Helper()
		return runHere(tb, append(clusterCommand(), clusterArgs(p.path, p.cli, "127.0.0.1", ports)...))
	})
}
