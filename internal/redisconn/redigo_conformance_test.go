package redisconn_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// redigoTo returns the built-in transport with the client's defaults.
func redigoTo(addr string) *redisconn.Redigo {
	return redisconn.NewRedigo(redisconn.Config{
		Dial: func(ctx context.Context) (redis.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return respconn.NewConn(conn, 3*time.Second), nil
		},
		Command:     3 * time.Second,
		Lease:       30 * time.Second,
		DialTimeout: 5 * time.Second,
		ClientName:  "conformance",
	})
}

func newRedigoTo(addr string) func(testing.TB) transport.Transport {
	return func(testing.TB) transport.Transport { return redigoTo(addr) }
}

// noGoroutinesLeft checks for leaked goroutines after the subtests. Tests that use it must not be
// parallel.
func noGoroutinesLeft(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { assert.NoError(t, goleak.Find(before)) })
}

// breaking matches the cases that stop, restrict or replicate a server, and so require a server of
// their own.
var breaking = regexp.MustCompile(`_(is|was)_down|unknown_count|refused_count|refuses|a_replica_counts`)

// slow matches cases that wait for seconds. The tests of internal/mux and internal/replication cover them on fake time.
var slow = regexp.MustCompile(`server_that_is_down_end|Replicate:_(many|every)_calls?`)

// behindProxy is a real server behind a breakable network.
func behindProxy(t *testing.T) transporttest.Harness {
	t.Helper()
	if slow.MatchString(t.Name()) {
		testlevel.All(t, "seconds of real time")
	}
	t.Parallel()
	server := redistest.Shared(t)
	if breaking.MatchString(t.Name()) {
		server = redistest.Start(t)
	}
	proxy := redistest.NewProxy(t, server.Addr())
	h := breakable.Behind(proxy, server)
	h.New = newRedigoTo(proxy.Addr())
	return h
}

func TestRedigoConformsBehindABreakableNetwork(t *testing.T) {
	redistest.Shared(t) // its goroutines outlive the test
	noGoroutinesLeft(t)
	transporttest.Run(t, behindProxy)
}

func TestRedigoConformsOnKilledAndFrozenServer(t *testing.T) {
	testlevel.All(t, "a server for each case")
	noGoroutinesLeft(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		h := breakable.Alone(server)
		h.New = newRedigoTo(server.Addr())
		return h
	})
}

func TestRedigoConformsOnTheEmbeddedServer(t *testing.T) {
	testlevel.All(t, "10 s of CPU time for tests that also run on other servers")
	noGoroutinesLeft(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Mini(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := breakable.Harness(proxy)
		h.New, h.Do = newRedigoTo(proxy.Addr()), server.Do
		h.CutSubscribers = func(testing.TB) { server.DropSubscribers() }
		h.Stop, h.Start = breakable.Outage(proxy, server.Do, "FLUSHALL")
		return h
	})
}

// mutantEnv is the environment variable that selects the mutant for TestMutant.
const mutantEnv = "REDLATCH_CONFORMANCE_MUTANT"

// mutant is the built-in transport broken in one way, which a case of the suite must detect.
type mutant struct {
	name, in string // in is group/case
	plant    func(b *broken)
}

// broken is the built-in transport with methods that can be replaced.
type broken struct {
	*redisconn.Redigo
	start       func(call *transport.Call, done transport.Done)
	leads       func(outermost transport.Transport) bool
	lead        func(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller)
	subscribe   func(ctx context.Context, channel string) (transport.Subscription, error)
	listeners   func(ctx context.Context, channels ...string) ([]int64, error)
	replicate   func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error))
	fence       func(ctx context.Context, call *transport.Call) error
	reconnected func() <-chan struct{}
	close       func() error
	slot        func(key string) int // nil: it is not a Slotter
}

func (b *broken) Start(call *transport.Call, done transport.Done) { b.start(call, done) }
func (b *broken) Leads(outermost transport.Transport) bool        { return b.leads(outermost) }
func (b *broken) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
	b.lead(ctx, call, done, caller)
}

func (b *broken) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return b.subscribe(ctx, channel)
}

func (b *broken) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	return b.listeners(ctx, channels...)
}

func (b *broken) Replicate(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
	b.replicate(call, replicas, timeout, done)
}

func (b *broken) Fence(ctx context.Context, call *transport.Call) error { return b.fence(ctx, call) }
func (b *broken) Reconnected() <-chan struct{}                          { return b.reconnected() }
func (b *broken) Close() error                                          { return b.close() }

// slotter adds transport.Slotter to broken.
type slotter struct{ *broken }

func (s slotter) Slot(key string) int { return s.slot(key) }

func (m mutant) transport(addr string) transport.Transport {
	r := redigoTo(addr)
	b := &broken{
		Redigo: r, start: r.Start, lead: r.Lead, subscribe: r.Subscribe, listeners: r.Listeners,
		replicate: r.Replicate, fence: r.Fence, reconnected: r.Reconnected, close: r.Close,
	}
	b.leads = func(outermost transport.Transport) bool { return outermost == transport.Transport(b) }
	m.plant(b)
	if b.slot != nil {
		return slotter{b}
	}
	return b
}

func TestConformanceSuiteKillsEveryMutant(t *testing.T) {
	testlevel.All(t, "a process and a server for each mutant")
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.timeout=90s", "-test.run=^TestMutant$/^"+escape(m.in))
			cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
			out, err := cmd.CombinedOutput()
			assert.Error(t, err)
			assert.Contains(t, string(out), "--- FAIL: TestMutant/"+strings.ReplaceAll(m.in, " ", "_"))
			assert.NotContains(t, string(out), "panic: test timed out")
		})
	}
}

// escape returns a pattern for the name of a subtest, with a slash between its parts.
func escape(name string) string {
	name = strings.NewReplacer("(", "\\(", ")", "\\)", " ", "_").Replace(name)
	return strings.ReplaceAll(name, "/", "$/^") + "$"
}

// TestMutant runs in a process started by TestConformanceSuiteKillsEveryMutant, and should fail.
func TestMutant(t *testing.T) {
	for _, m := range mutants {
		if m.name != os.Getenv(mutantEnv) {
			continue
		}
		transporttest.Run(t, func(t *testing.T) transporttest.Harness {
			t.Helper()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			h := breakable.Behind(proxy, server)
			h.New = func(testing.TB) transport.Transport { return m.transport(proxy.Addr()) }
			h.Patience = 3 * time.Second
			return h
		})
		return
	}
	t.Skip("no mutant to run")
}
