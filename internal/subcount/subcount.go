// Package subcount counts the subscribers of channels, on a master and on all of its
// replicas: what is published on a master reaches the subscribers there, and those on a
// replica. A waiter without a subscriber may be taken for dead, so a count is of all nodes
// or it is an error. The package knows of no lock, and of connections only that calls can
// be started on them.
//
// # One count
//
//	Listeners ─▶ list: still good? ──yes──▶ PUBSUB NUMSUB to the master and to
//	                 │ no                     every replica at once ─▶ added up
//	                 ▼                                   │
//	        HELLO and ROLE to the master                 └─ one does not answer:
//	                 │                                      an error that names it
//	                 └─ refused, or not a master alone:
//	                    an error, remembered as long as a list of replicas is good
//
// A list is good for ten seconds, or until the connection to the master is
// replaced: then the master may be another. One that the connection was replaced
// during is not used. HELLO tells whether the server is part of a cluster, whose
// other nodes ROLE says nothing of.
//
// Replicas are where ROLE says they are. Each is asked for its identity with every
// count, since an address that leads elsewhere, to the master say, would hide the
// listeners of the replica.
//
// # The life of a replica
//
//	in ROLE ──ROLE no longer shows it──▶ former ──a failure, or ten minutes──▶ forgotten
//	   ▲                                   │
//	   └───────────ROLE shows it───────────┘
//
// ROLE does not show a replica that is being synchronised anew, while its
// subscribers stay connected. So a former replica is counted, too, as long as it
// answers; when it cannot be reached, it has no subscribers.
//
// # Who owns what
//
// Each replica has a goroutine, which closes the connection when it was
// not used for a minute, or with the Counter. Close waits for these goroutines. There are
// no other goroutines: the answers come on those of the connections. No mutex is
// held across I/O.
package subcount

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

const (
	// listGood is how long the master's replicas are taken to stay the same.
	listGood = 10 * time.Second
	// idleTime is how long a connection to a replica is kept without use.
	idleTime = time.Minute
	// formerTime is how long a replica that ROLE no longer shows is asked still.
	formerTime = 10 * time.Minute
)

// Node is where calls can be started, as on a transport.Transport.
type Node = mux.Starter

// Master is the connection to the master.
type Master interface {
	Node
	// Reconnected is that of transport.Reconnecter.
	Reconnected() <-chan struct{}
}

// Replica is a connection to a replica, which connects by itself when it must.
type Replica interface {
	Node
	// Close ends the connection and all calls on it.
	Close() error
}

// Config says which nodes to ask. All but Replica is required.
type Config struct {
	// Master is the connection to the master. The Counter does not close it.
	Master Master
	// Replica returns a connection to the replica at addr, host:port, without any
	// I/O. With nil the listeners on replicas cannot be counted.
	Replica func(addr string) Replica
	// Replicas asks for the addresses of the master's replicas where the master's own
	// reply to ROLE is not to be relied on: in a cluster. With nil the master is asked
	// for its identity (HELLO), and must be in no cluster, and for its replicas
	// (ROLE).
	Replicas func(ctx context.Context) ([]string, error)
	// Publish is the publish command: the subscribers that it reaches are
	// counted.
	Publish string
	// Command bounds one count.
	Command time.Duration
}

// Counter counts. All methods are safe for concurrent use.
type Counter struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // ends with Close: the goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup // the replicas' goroutines

	mu       sync.Mutex // guards what follows; not held during a call
	closed   bool
	list     *replicaList        // the last one; nil: none
	asking   chan struct{}       // closed when the list of replicas under way is over; nil: none is
	replicas map[string]*replica // by address
}

// New returns a Counter. It does no I/O.
func New(cfg Config) *Counter {
	c := &Counter{cfg: cfg, replicas: map[string]*replica{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends the connections to replicas. It may be called more than once.
func (c *Counter) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

// Listeners is that of transport.Counter, bounded by the command timeout. It sends
// PUBSUB NUMSUB, or PUBSUB SHARDNUMSUB where SPUBLISH publishes; HELLO and ROLE to
// the master, at most once in ten seconds and after a reconnect; and HELLO to the
// replicas.
func (c *Counter) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	if len(channels) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Command,
		fmt.Errorf("%w within %v: %w", errSilence, c.cfg.Command, context.DeadlineExceeded))
	defer cancel()
	for {
		s, err := c.current(ctx)
		if err != nil {
			return nil, err
		}
		counts, err := c.count(ctx, s, channels)
		if err != nil || !s.overtaken() {
			return counts, err
		}
	}
}

// count asks the master and the replicas of a list of replicas at once.
func (c *Counter) count(ctx context.Context, s *replicaList, channels []string) ([]int64, error) {
	replicas, err := c.use(s)
	if err != nil {
		return nil, err
	}
	defer c.release(replicas)
	r := newRound(len(replicas))
	defer r.abandon()
	args := c.args(channels)
	r.start(c.cfg.Master, "the master", "PUBSUB", args)
	for _, m := range replicas {
		r.start(m.node, "replica "+m.addr, "HELLO", helloArgs)
		r.start(m.node, "replica "+m.addr, "PUBSUB", args)
	}
	sum, err := r.numbers(ctx, 0, len(channels))
	if err != nil {
		return nil, err
	}
	for i, m := range replicas {
		counts, err := r.replicaNumbers(ctx, 2*(i+1), len(channels))
		if err != nil && !c.forget(ctx, m, err) {
			return nil, err
		}
		for k, n := range counts {
			sum[k] += n
		}
	}
	return sum, nil
}

// args makes the arguments of PUBSUB.
func (c *Counter) args(channels []string) []any {
	args := make([]any, 0, 1+len(channels))
	if c.cfg.Publish == "SPUBLISH" {
		args = append(args, "SHARDNUMSUB")
	} else {
		args = append(args, "NUMSUB")
	}
	for _, channel := range channels {
		args = append(args, channel)
	}
	return args
}

// round is calls that are under way at once, and the wait for their outcomes.
type round struct {
	asked []*asked
}

// asked is one call to one node.
type asked struct {
	*mux.Pending
	where string
}

func newRound(replicas int) *round { return &round{asked: make([]*asked, 0, 1+2*replicas)} }

func (r *round) start(node Node, where, command string, args []any) {
	r.asked = append(r.asked, &asked{mux.Begin(node, &transport.Call{Command: command, Args: args}), where})
}

// await returns the i-th reply. The error says which node was asked what.
func (r *round) await(ctx context.Context, i int) (any, error) {
	reply, err := r.asked[i].Wait(ctx)
	return reply, r.blame(i, err)
}

// blame adds to an error of the i-th call which node it concerns; nil stays
// nil.
func (r *round) blame(i int, err error) error {
	if err == nil {
		return nil
	}
	a := r.asked[i]
	return fmt.Errorf("redlatch: subscribers on %s cannot be counted: %s: %w", a.where, a.Name(), err)
}

// abandon leaves the calls that no caller waits for any more.
func (r *round) abandon() {
	for _, a := range r.asked {
		a.Abandon()
	}
}

// numbers returns the n numbers of a node, whose PUBSUB is the i-th call.
func (r *round) numbers(ctx context.Context, i, n int) ([]int64, error) {
	reply, err := r.await(ctx, i)
	if err != nil {
		return nil, err
	}
	counts, err := numbers(reply, n)
	return counts, r.blame(i, err)
}

// replicaNumbers is numbers for a replica, whose HELLO is the call before.
func (r *round) replicaNumbers(ctx context.Context, i, n int) ([]int64, error) {
	who, err := r.await(ctx, i-1)
	if err != nil {
		return nil, err
	}
	if err := isReplica(who); err != nil {
		return nil, r.blame(i-1, err)
	}
	return r.numbers(ctx, i, n)
}
