// Package subcount counts the subscribers of channels on a master and all its replicas. It never returns an incomplete
// count, because a waiter without a subscriber may be taken for dead. ROLE omits a replica during a full
// synchronization, so a former replica is counted for ten more minutes, or until it cannot be reached. Every count
// checks with HELLO that each replica is still a replica, because an address that leads to the master would hide the
// replica's subscribers. Each replica has a goroutine that closes its connection when it is idle; Close waits for these
// goroutines. No mutex is held during I/O.
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
	listGood = 10 * time.Second
	// idleTime is how long an unused connection to a replica is kept.
	idleTime = time.Minute
	// formerTime is how long a replica is queried after ROLE has ceased to list it.
	formerTime = 10 * time.Minute
)

// Master is the connection to the master.
type Master interface {
	mux.Starter
	// Reconnected is as in transport.Reconnecter.
	Reconnected() <-chan struct{}
}

// Replica is a connection to a replica. It dials when needed.
type Replica interface {
	mux.Starter
	// Close closes the connection and ends its calls.
	Close() error
}

// Config configures a [Counter]. All fields except Replica and Replicas are required.
type Config struct {
	// Master is the connection to the master. The Counter does not close it.
	Master Master
	// Replica returns a connection to the replica at addr (host:port), without any I/O. If it is nil, replicas cannot be
	// counted.
	Replica func(addr string) Replica
	// Replicas, if not nil, replaces HELLO and ROLE, for masters of a cluster.
	Replicas func(ctx context.Context) ([]string, error)
	// Publish is the publish command, which determines the subscribers to be counted.
	Publish string
	// Command limits the duration of a count.
	Command time.Duration
}

// Counter counts subscribers. It is safe for concurrent use.
type Counter struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the replicas' goroutines
	asking chan struct{}  // buffered; full while a caller is making a list

	mu       sync.Mutex // not held during a call
	closed   bool
	list     *replicaList        // the latest, or nil
	replicas map[string]*replica // by address
}

// New returns a Counter. It does not perform any I/O.
func New(cfg Config) *Counter {
	c := &Counter{cfg: cfg, asking: make(chan struct{}, 1), replicas: map[string]*replica{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close closes the connections to replicas. It may be called more than once.
func (c *Counter) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

// Listeners implements transport.Counter. It takes at most Config.Command. It sends PUBSUB NUMSUB (SHARDNUMSUB for
// SPUBLISH) to all nodes, and HELLO to the replicas. At most every ten seconds, and after a reconnect, it also sends
// HELLO and ROLE to the master.
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

func (c *Counter) count(ctx context.Context, s *replicaList, channels []string) ([]int64, error) {
	replicas, err := c.use(s)
	if err != nil {
		return nil, err
	}
	defer c.release(replicas)
	args := c.args(channels)
	own := begin(c.cfg.Master, "the master", "PUBSUB", args)
	defer own.Abandon()
	hello, theirs := make([]asked, len(replicas)), make([]asked, len(replicas))
	for i, m := range replicas {
		hello[i] = begin(m.node, "replica "+m.addr, "HELLO", helloArgs)
		defer hello[i].Abandon()
		theirs[i] = begin(m.node, "replica "+m.addr, "PUBSUB", args)
		defer theirs[i].Abandon()
	}
	sum, err := own.numbers(ctx, len(channels))
	if err != nil {
		return nil, err
	}
	for i, m := range replicas {
		counts, err := replicaNumbers(ctx, hello[i], theirs[i], len(channels))
		if err != nil && !c.forget(ctx, m, err) {
			return nil, err
		}
		for k, n := range counts {
			sum[k] += n
		}
	}
	return sum, nil
}

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

type asked struct {
	*mux.Pending
	where string
}

func begin(node mux.Starter, where, command string, args []any) asked {
	return asked{mux.Begin(node, &transport.Call{Command: command, Args: args}), where}
}

// await names the node and the command in its error.
func (a asked) await(ctx context.Context) (any, error) {
	reply, err := a.Wait(ctx)
	return reply, a.blame(err)
}

func (a asked) blame(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redlatch: cannot count subscribers on %s: %s: %w", a.where, a.Name(), err)
}

func (a asked) numbers(ctx context.Context, n int) ([]int64, error) {
	reply, err := a.await(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := numbers(reply, n)
	return counts, a.blame(err)
}

func replicaNumbers(ctx context.Context, hello, theirs asked, n int) ([]int64, error) {
	who, err := hello.await(ctx)
	if err != nil {
		return nil, err
	}
	if err := isReplica(who); err != nil {
		return nil, hello.blame(err)
	}
	return theirs.numbers(ctx, n)
}
