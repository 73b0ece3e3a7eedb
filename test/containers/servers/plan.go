// Package servers starts the servers that suites run on: with REDLATCH_ITEST=docker in containers, otherwise installed
// programs.
//
// A cluster node redirects clients to addresses that must be valid for them. So all nodes of a cluster share one
// container, call themselves 127.0.0.1, and publish their ports unchanged, which needs a Docker engine on this machine.
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

// Variable selects the servers: "docker", or "local" (the default).
const Variable = "REDLATCH_ITEST"

// Plan selects the servers of the suites. The zero Plan has no servers.
type Plan struct {
	// Line describes the servers.
	Line              string
	Servers, Clusters []Kind
	Containers        bool
}

// Kind is a kind of server.
type Kind struct {
	// Name is an image, or a program without its folder.
	Name string

	start   func(tb testing.TB) (addr string)
	cluster func(tb testing.TB) (addrs []string)
}

// Start starts a server until the test ends.
func (k Kind) Start(tb testing.TB) *Server {
	tb.Helper()
	return connect(tb, k.start(tb), "")
}

// StartCluster starts three masters with a replica each until the test ends.
func (k Kind) StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := survey(tb, k.cluster(tb))
	if err != nil {
		tb.Fatalf("servers: a cluster of %s: %v", k.Name, err)
	}
	return c
}

// Demanded reports whether missing servers are an error.
func Demanded() bool { return os.Getenv("CI") == "true" || os.Getenv(Variable) != "" }

// Choose makes the plan and starts nothing. With CI=true a missing program of `make setup` is an error.
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

// versionText matches as in "Redis server v=7.0.15".
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
			// The long node timeout keeps a busy machine's nodes from being declared dead.
			return redistest.StartCluster(tb, 3, 1, binary, redistest.WithArgs("--cluster-node-timeout", "60000")).Addrs()
		},
	}, version
}
