package redistest

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// shared is the server of the whole test binary.
var shared struct {
	managed atomic.Bool // Main runs and will stop the server
	once    sync.Once
	server  *Server
	err     error
}

// Shared returns the one server of this test binary, which the first call
// starts. Tests on it keep to names of their own (see Key) and must not pause,
// kill, restart or flush it. The package's TestMain must call Main, which ends
// it.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if !shared.managed.Load() {
		tb.Fatal("redistest: Shared needs func TestMain(m *testing.M) { redistest.Main(m) }")
	}
	cfg := resolve(tb, nil)
	shared.once.Do(func() {
		shared.server, shared.err = start(cfg)
	})
	if shared.err != nil {
		tb.Fatalf("redistest: shared server: %v", shared.err)
	}
	return shared.server
}

// Main runs a package's tests, stops the shared server if there is one, checks
// that no goroutine was left behind (goleak, with opts) and ends the process.
// It is for TestMain.
func Main(m *testing.M, opts ...goleak.Option) {
	shared.managed.Store(true)
	code := m.Run()
	// Through the once: no test can start the server any more.
	shared.once.Do(func() {})
	if s := shared.server; s != nil {
		s.discard()
	}
	if code == 0 {
		if err := goleak.Find(opts...); err != nil {
			fmt.Fprintf(os.Stderr, "redistest: goroutines left behind:\n%v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// IgnoreServers makes goleak overlook the goroutines of servers that are still
// running, for a check within a test.
func IgnoreServers() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/redlatch/redlatch/internal/test/redistest.(*process).run")
}
