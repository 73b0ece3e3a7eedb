// Package servers starts the servers that suites run on: with REDLATCH_ITEST=docker in
// containers, otherwise the programs that are installed.
//
// [Choose] makes a [Plan] before any test and starts nothing. A server that cannot be started
// fails the test that needs it.
//
// A cluster node redirects clients to other nodes, so it must know an address that is valid
// for them. All nodes of a cluster therefore share one container, call themselves 127.0.0.1,
// and publish their ports unchanged on the loopback interface of this machine. That needs a
// Docker engine on this machine.
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

// Variable is the environment variable that selects the servers: "docker", or "local" (the
// default) for installed programs.
const Variable = "REDLATCH_ITEST"

// Plan selects the servers of the suites. The zero Plan has no servers.
type Plan struct {
	// Line describes the servers.
	Line string
	// Servers are the kinds of single servers, Clusters those of clusters.
	Servers, Clusters []Kind
	// Containers reports whether the servers run in containers.
	Containers bool
}

// Kind is a kind of server.
type Kind struct {
	// Name is the name of an image, or of a program without its folder.
	Name string

	start   func(tb testing.TB) (addr string)
	cluster func(tb testing.TB) (addrs []string)
}

// Start starts a server of the kind, which ends with the test.
func (k Kind) Start(tb testing.TB) *Server {
	tb.Helper()
	return connect(tb, k.start(tb), "")
}

// StartCluster starts a cluster of three masters with a replica each, which ends with
// the test.
func (k Kind) StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := survey(tb, k.cluster(tb))
	if err != nil {
		tb.Fatalf("servers: a cluster of %s: %v", k.Name, err)
	}
	return c
}

// Demanded reports whether missing servers are an error: with CI=true, or when the environment
// selects the servers.
func Demanded() bool { return os.Getenv("CI") == "true" || os.Getenv(Variable) != "" }

// Choose makes the plan. With CI=true a missing program of `make setup` is an error.
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

// contained returns the plan with containers.
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

// installed returns the plan with the programs of this machine.
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

// versionText matches the version in the output of --version, such as "Redis server v=7.0.15".
var versionText = regexp.MustCompile(`\bv=(\S+)`)

// programKind returns the kind of a server program, and its version.
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
