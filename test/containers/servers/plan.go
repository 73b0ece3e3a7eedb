package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Variable is the environment variable that says what to run on: "docker", "local", or
// nothing, for containers where there is an engine and installed programs elsewhere.
const Variable = "REDLATCH_ITEST"

// Plan is what the suites run on. The zero Plan has nothing.
type Plan struct {
	// Line says what it is, and why.
	Line string
	// Servers can be started by themselves, Clusters as clusters.
	Servers, Clusters []Kind
	// Containers says that servers run in some.
	Containers bool
}

// Kind is a kind of server.
type Kind struct {
	// Name is an image's, or a program's, without its folder.
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

// Demanded reports whether it is an error that nothing real was found: with CI=true, or
// when the environment says what to run on.
func Demanded() bool { return os.Getenv("CI") == "true" || os.Getenv(Variable) != "" }

// Choose makes the plan. It starts nothing, and takes little more than the 300 ms of the
// probe. When it chooses containers, it sets DOCKER_HOST to the engine that has answered,
// for the library that starts them. An error says what was looked for; with CI=true one
// of the programs of `make setup` that is missing is an error, too.
func Choose(ctx context.Context) (Plan, error) {
	asked := os.Getenv(Variable)
	switch asked {
	case "local":
		return installed(Variable + "=local")
	case "", "docker":
	default:
		return Plan{}, fmt.Errorf("%s=%s: it is docker, local, or not set", Variable, asked)
	}
	found, err := probe(ctx, sockets())
	switch {
	case err == nil:
		return contained(ctx, found)
	case asked == "docker":
		return Plan{}, fmt.Errorf("%s=docker, but %w", Variable, err)
	}
	return installed(err.Error())
}

// contained is the plan of an engine.
func contained(ctx context.Context, e engine) (Plan, error) {
	if err := os.Setenv("DOCKER_HOST", e.host); err != nil {
		return Plan{}, err
	}
	plan := Plan{
		Line:       fmt.Sprintf("containers of the Docker engine at %s: %s", e.host, strings.Join(images, ", ")),
		Containers: true,
	}
	for _, image := range images {
		plan.Servers = append(plan.Servers, e.kind(image))
	}
	far, err := e.far(ctx)
	if err != nil {
		return Plan{}, err
	}
	if far != nil {
		programs, err := installed(far.Error())
		plan.Clusters, plan.Line = programs.Clusters, plan.Line+"; clusters of "+programs.Line
		return plan, err
	}
	for _, image := range clusterImages {
		plan.Clusters = append(plan.Clusters, e.kind(image))
	}
	plan.Line += "; clusters of " + strings.Join(clusterImages, ", ")
	return plan, nil
}

// installed is the plan of the programs of this machine, for a reason.
func installed(why string) (Plan, error) {
	var plan Plan
	var about []string
	var missing error
	for _, find := range finders {
		p, err := find()
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		plan.Servers = append(plan.Servers, p.kind())
		about = append(about, p.String())
		if p.cli != "" {
			plan.Clusters = append(plan.Clusters, p.kind())
		} else {
			missing = errors.Join(missing, fmt.Errorf("no clusters of %s: there is no %s", p.name, p.cliName()))
		}
	}
	if len(plan.Servers) > 0 { // without these the others are no proof
		others, err := more()
		missing = errors.Join(missing, err)
		for _, p := range others {
			plan.Servers = append(plan.Servers, p.kind())
			about = append(about, p.String())
		}
	}
	plan.Line = fmt.Sprintf("installed programs: %s, since %s", strings.Join(about, ", "), why)
	switch {
	case len(plan.Servers) == 0:
		return Plan{}, fmt.Errorf("nothing real to test on: %s; %w", why, missing)
	case missing != nil && os.Getenv("CI") == "true":
		return Plan{}, fmt.Errorf("CI=true, and %s: %w", why, missing)
	case missing != nil:
		plan.Line += "; " + strings.ReplaceAll(missing.Error(), "\n", "; ")
	}
	return plan, nil
}
