package redisconn_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// mutantEnv names the mutant on which TestMutant runs the suite.
const mutantEnv = "REDLATCH_CONFORMANCE_MUTANT"

// mutant breaks the built-in transport in one way. The case of the suite must notice.
type mutant struct {
	name, in string // in is group/case
	plant    func(b *broken)
	fine     bool // nothing is broken: the case must pass
}

// broken is the built-in transport with replaceable methods.
type broken struct {
	*redisconn.Redigo
	start       func(call *transport.Call, done transport.Done)
	leads       func(outermost transport.Transport) bool
	lead        func(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller)
	subscribe   func(ctx context.Context, channel string) (transport.Subscription, error)
	listeners   func(ctx context.Context, channels ...string) ([]int64, error)
	replicate   func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated)
	fence       func(ctx context.Context, call *transport.Call) error
	reconnected func() <-chan struct{}
	close       func() error
	slot        func(key string) int // nil: it is not a Slotter
}

func (b *broken) Start(call *transport.Call, done transport.Done) { b.start(call, done) }
func (b *broken) Leads(outermost transport.Transport) bool        { return b.leads(outermost) }
func (b *broken) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
	b.lead(ctx, call, done, caller)
}

func (b *broken) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return b.subscribe(ctx, channel)
}

func (b *broken) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	return b.listeners(ctx, channels...)
}

func (b *broken) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	b.replicate(call, replicas, timeout, done)
}

func (b *broken) Fence(ctx context.Context, call *transport.Call) error { return b.fence(ctx, call) }
func (b *broken) Reconnected() <-chan struct{}                          { return b.reconnected() }
func (b *broken) Close() error                                          { return b.close() }

// slotter is also a transport.Slotter.
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

func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{callMutants, leadMutants, subscriptionMutants, countMutants, replicaMutants, otherMutants} {
		all = append(all, list...)
	}
	return all
}

func TestTheConformanceSuiteFindsEveryMutant(t *testing.T) {
	testlevel.All(t, "a process and a server for each of 48 mutants")
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.timeout=90s", "-test.run=^TestMutant$/^"+escape(m.in))
			cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
			out, err := cmd.CombinedOutput()
			verdict := "--- FAIL: "
			if m.fine {
				verdict = "--- PASS: "
				assert.NoError(t, err)
			}
			assert.Contains(t, string(out), verdict+"TestMutant/"+strings.ReplaceAll(m.in, " ", "_"))
			assert.NotContains(t, string(out), "panic: test timed out")
		})
	}
}

// escape makes a pattern of a subtest's name, a slash between its parts.
func escape(name string) string {
	name = strings.NewReplacer("(", "\\(", ")", "\\)", " ", "_").Replace(name)
	return strings.ReplaceAll(name, "/", "$/^") + "$"
}

// TestMutant runs in a process started by TestTheConformanceSuiteFindsEveryMutant, and should fail.
func TestMutant(t *testing.T) {
	for _, m := range mutants() {
		if m.name != os.Getenv(mutantEnv) {
			continue
		}
		transporttest.Run(t, func(t *testing.T) transporttest.Harness {
			t.Helper()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			h := breakable.Behind(proxy, server)
			h.New = func(testing.TB) transport.Transport { return m.transport(proxy.Addr()) }
			if !m.fine {
				h.Patience = 3 * time.Second
			}
			return h
		})
		return
	}
	t.Skip("there is no mutant to run")
}
