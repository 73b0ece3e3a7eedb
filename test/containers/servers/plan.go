// Package servers starts the servers on which suites run. With REDLATCH_ITEST=docker, it runs them in containers.
// Otherwise, it uses programs that are installed on this machine.
//
// All nodes of a cluster run in one container, announce 127.0.0.1 as their address, and publish their ports unchanged,
// because they redirect clients to these addresses. The Docker engine must be on this machine.
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

// Variable is the environment variable that selects the servers. Its value is "docker" or "local", the default.
const Variable = "REDLATCH_ITEST"

// Plan contains the servers on which the suites run. The zero value has no servers.
type Plan struct {
	Line              string
	Servers, Clusters []Kind
	Containers        bool
}

// Kind is a kind of server.
type Kind struct {
	// Name is the name of an image or the base name of a program.
	Name string

	start   func(tb testing.TB) (addr string)
	cluster func(tb testing.TB) (addrs []string)
}

// Start starts a server that runs until the test ends.
func (k Kind) Start(tb testing.TB) *Server {
	tb.Helper()
	return connect(tb, k.start(tb), "")
}

// StartCluster starts a cluster of three masters with one replica each. It runs until the test ends.
func (k Kind) StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := survey(tb, k.cluster(tb))
	if err != nil {
		tb.Fatalf("servers: a cluster of %s: %v", k.Name, err)
	}
	return c
}

// Demanded reports whether it is an error if servers are missing.
func Demanded() bool { return os.Getenv("CI") == "true" || os.Getenv(Variable) != "" }

// Choose returns the plan without starting servers. With CI=true, it is an error if a program that `make setup`
// installs is missing.
func Choose() (Plan, error) {
	switch asked := os.Getenv(Variable); asked {
	case "", "local":
		return installed()
	case "docker":
		return contained(), nil
	default:
		return Plan{}, fmt.Errorf("invalid %s=%s: must be docker or local", Variable, asked)
	}
}

func contained() Plan {
	plan := Plan{
		Line:       fmt.Sprintf("containers: %s; clusters of %s", strings.Join(images, ", "), strings.Join(clusterImages, ", ")),
		Containers: true,
	}
	for _, image := range images {
		plan.Servers = append(plan.Servers, imageKind(image))
	}
	for _, image := range clusterImages {
		plan.Clusters = append(plan.Clusters, imageKind(image))
	}
	return plan
}

func installed() (Plan, error) {
	var plan Plan
	var about []string
	var missing error
	for _, find := range []func() (string, error){redistest.FindServer, redistest.FindValkey} {
		path, err := find()
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		kind, version := programKind(path)
		plan.Servers, plan.Clusters = append(plan.Servers, kind), append(plan.Clusters, kind)
		about = append(about, kind.Name+" "+version)
	}
	if len(plan.Servers) == 0 {
		return Plan{}, fmt.Errorf("no server to test on: %w", missing)
	}
	others := redistest.MoreServers()
	if len(others) == 0 {
		missing = errors.Join(missing, errors.New("no servers of other releases: run scripts/more-servers.sh"))
	}
	for _, path := range others {
		kind, version := programKind(path)
		about = append(about, kind.Name+" "+version)
		kind.Name += "-" + version
		plan.Servers = append(plan.Servers, kind)
	}
	plan.Line = "installed programs: " + strings.Join(about, ", ")
	switch {
	case missing != nil && os.Getenv("CI") == "true":
		return Plan{}, fmt.Errorf("CI=true: %w", missing)
	case missing != nil:
		plan.Line += "; " + strings.ReplaceAll(missing.Error(), "\n", "; ")
	}
	return plan, nil
}

var versionText = regexp.MustCompile(`\bv=(\S+)`)

func programKind(path string) (kind Kind, version string) {
	text, err := exec.Command(path, "--version").Output()
	version = "of unknown version"
	if found := versionText.FindSubmatch(text); err == nil && found != nil {
		version = string(found[1])
	}
	binary := redistest.WithBinary(path)
	return Kind{
		Name: filepath.Base(path),
		start: func(tb testing.TB) string {
			tb.Helper()
			return redistest.Start(tb, binary).Addr()
		},
		cluster: func(tb testing.TB) []string {
			tb.Helper()
			// With a long node timeout, nodes on a busy machine are not declared dead.
			return redistest.StartCluster(tb, 3, 1, binary, redistest.WithArgs("--cluster-node-timeout", "60000")).Addrs()
		},
	}, version
}
