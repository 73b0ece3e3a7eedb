package containers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/test/containers/servers"
)

// plan is what the tests run on, or why there is nothing.
var plan struct {
	servers.Plan
	err error
}

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(quiet{log.New(io.Discard, "", 0)}) // it tells of every connection that a test breaks
	if !testing.Short() {
		plan.Plan, plan.err = servers.Choose(context.Background())
		if plan.err != nil {
			fmt.Println("itest: NOT RUN:", plan.err)
			if servers.Demanded() {
				os.Exit(1)
			}
		} else {
			fmt.Println("itest:", plan.Line)
		}
	}
	os.Exit(run(m))
}

// run runs the tests, and holds that no goroutine is left. With containers that is not
// held: what starts them keeps connections to the engine.
func run(m *testing.M) int {
	code := m.Run()
	if code != 0 || plan.Containers {
		return code
	}
	err := goleak.Find(
		// What rueidis closes in its own time, five seconds after.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
	if err != nil {
		fmt.Fprintf(os.Stderr, "itest: goroutines left behind:\n%v\n", err)
		return 1
	}
	return 0
}

type quiet struct{ *log.Logger }

func (q quiet) Printf(_ context.Context, format string, v ...any) { q.Logger.Printf(format, v...) }

// each runs body as a subtest for each kind.
func each(t *testing.T, kinds []servers.Kind, body func(t *testing.T, kind servers.Kind)) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("-short: it needs a real server")
	case plan.err != nil:
		t.Skipf("NOT RUN: %v", plan.err)
	case len(kinds) == 0:
		t.Skipf("NOT RUN: %s", plan.Line)
	}
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			body(t, kind)
		})
	}
}
