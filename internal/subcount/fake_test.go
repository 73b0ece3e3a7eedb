package subcount

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the command timeout.
const patience = 3 * time.Second

// errGone is the error for an unreachable node.
var errGone = fmt.Errorf("%w: connection refused", transport.ErrNotSent)

// silence withholds the reply until Close.
type silence struct{}

type node struct {
	mu       sync.Mutex // guards the fields below; not held while done runs
	answers  map[string]any
	calls    []*transport.Call
	pending  []transport.Done
	closed   int
	replaced chan struct{}
	before   func(command string) // runs before each answer
}

func (n *node) Start(call *transport.Call, done transport.Done) {
	if n.before != nil {
		n.before(call.Command)
	}
	n.mu.Lock()
	n.calls = append(n.calls, call)
	answer := n.answers[call.Command]
	if _, silent := answer.(silence); silent {
		call.Claim(1)
		n.pending = append(n.pending, done)
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	if err, failed := answer.(error); failed {
		done(nil, err)
		return
	}
	done(answer, nil)
}

func (n *node) Close() error {
	n.mu.Lock()
	n.closed++
	pending := n.pending
	n.pending = nil
	n.mu.Unlock()
	for _, done := range pending {
		done(nil, fmt.Errorf("%w: %w", transport.ErrUncertain, transport.ErrClosed))
	}
	return nil
}

func (n *node) Reconnected() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replaced
}

func (n *node) reconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.replaced)
	n.replaced = make(chan struct{})
}

func (n *node) set(command string, answer any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[command] = answer
}

// asked returns how often a command was sent.
func (n *node) asked(command string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(n.calls), func(c *transport.Call) bool { return c.Command != command }))
}

func (n *node) ends() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

func refusal(text string) error { return &transport.ServerError{Text: text} }

// hello returns a reply to HELLO.
func hello(mode, role string) any {
	return []any{
		[]byte("server"), []byte("redis"), []byte("proto"), int64(2),
		[]byte("mode"), []byte(mode), []byte("role"), []byte(role), []byte("modules"), []any{},
	}
}

// roleOf returns a master's reply to ROLE.
func roleOf(ports ...string) any {
	replicas := []any{}
	for _, port := range ports {
		replicas = append(replicas, []any{[]byte("10.0.0.1"), []byte(port), []byte("14")})
	}
	return []any{[]byte("master"), int64(14), replicas}
}

func at(port string) string { return "10.0.0.1:" + port }

// numsub returns a PUBSUB NUMSUB reply for one channel.
func numsub(n int64) any { return []any{[]byte("somebody"), n} }

// deployment is a master with replicas, and a Counter.
type deployment struct {
	*Counter
	master   *node
	replicas map[string]*node // by address
	mu       sync.Mutex       // guards dialled
	dialled  []string
}

// newDeployment returns a deployment with a subscriber on the master and on each replica.
func newDeployment(t *testing.T, ports ...string) *deployment {
	t.Helper()
	w := &deployment{replicas: map[string]*node{}}
	w.master = &node{replaced: make(chan struct{}), answers: map[string]any{
		"HELLO": hello("standalone", "master"), "ROLE": roleOf(ports...), "PUBSUB": numsub(1),
	}}
	for _, port := range ports {
		w.replicas[at(port)] = &node{answers: map[string]any{"HELLO": hello("standalone", "replica"), "PUBSUB": numsub(1)}}
	}
	w.Counter = New(Config{Master: w.master, Replica: w.dial, Publish: "PUBLISH", Command: patience})
	t.Cleanup(w.Close)
	return w
}

func (w *deployment) dial(addr string) Replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialled = append(w.dialled, addr)
	return w.replicas[addr]
}
