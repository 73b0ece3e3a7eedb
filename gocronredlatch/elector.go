package gocronredlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/leader"
)

// ElectorConfig configures an [Elector]. Only Name is required.
type ElectorConfig struct {
	// Name is the name of the lock, the same in all processes.
	Name string

	// Fair makes processes lead in order of arrival. It must be the same in all processes. By
	// default, any candidate may lead next.
	Fair bool

	// Skew is how long a new leader waits before it runs jobs. It must exceed the difference
	// between the clocks; otherwise a job may run again when this process ticks later. The default
	// is 0.
	Skew time.Duration

	// OnError is called with each error that does not end Run, as in [leader.Config]. By default, the
	// client's logger logs it as a warning.
	OnError func(err error)
}

// ErrNotLeader means that this process does not lead. See [Elector.IsLeader] and [Elector.Task].
var ErrNotLeader = errors.New("gocronredlatch: this process is not the leader")

// Elector is a gocron.Elector: the leading process runs all jobs. [Elector.Run] makes the process a
// candidate. It is safe for concurrent use.
type Elector struct {
	client *redlatch.Client
	config ElectorConfig

	mu   sync.Mutex
	term *term // while this process leads
}

type term struct {
	ctx   context.Context //nolint:containedctx // it ends with the term
	since time.Time
	tasks sync.WaitGroup // Add is called while Elector.term is set, with mu held
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector, or redlatch.ErrInvalid if Name is empty or Skew is negative. It
// does no I/O.
func NewElector(client *redlatch.Client, config ElectorConfig) (*Elector, error) {
	if config.Name == "" || config.Skew < 0 {
		return nil, fmt.Errorf("%w: Elector needs a Name and a non-negative Skew", redlatch.ErrInvalid)
	}
	return &Elector{client: client, config: config}, nil
}

// Run makes this process a candidate until ctx ends. Then the contexts of running tasks end, and Run waits
// for the tasks before another process can lead. To let tasks finish, shut the scheduler down first. Run
// returns the error of [leader.Run]. Calls to Run must not overlap.
func (e *Elector) Run(ctx context.Context) error {
	return leader.Run(ctx, e.client, e.config.Name, leader.Config{
		Lead: e.lead, Fair: e.config.Fair, OnError: e.config.OnError,
	})
}

func (e *Elector) lead(ctx context.Context) error {
	t := &term{ctx: ctx, since: time.Now()}
	e.set(t)
	<-ctx.Done()
	e.set(nil)
	t.tasks.Wait()
	return context.Cause(ctx)
}

func (e *Elector) set(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}

// IsLeader is called by gocron at each tick. It returns nil if this process has led for longer than
// Skew, and otherwise [ErrNotLeader]. It does no I/O.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leads()
}

// leads is called with mu held.
func (e *Elector) leads() error {
	switch {
	case e.term == nil:
		return ErrNotLeader
	case e.term.ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotLeader, context.Cause(e.term.ctx))
	case time.Since(e.term.since) < e.config.Skew:
		return fmt.Errorf("%w yet: elected less than Skew (%v) ago", ErrNotLeader, e.config.Skew)
	}
	return nil
}

// Task returns a task that calls fn with a context that ends when gocron ends the job or this process no longer leads;
// for the latter, leader.Config describes the cause. If the process does not lead, the run fails with [ErrNotLeader]
// instead.
func (e *Elector) Task(fn func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		leading, done, err := e.begin()
		if err != nil {
			return err
		}
		defer done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(leading, func() { cancel(context.Cause(leading)) })()
		return fn(&lasting{ctx, leading, cancel})
	})
}

// begin starts a task of this term. The caller must call done.
func (e *Elector) begin() (leading context.Context, done func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.leads(); err != nil {
		return nil, nil, err
	}
	t := e.term
	t.tasks.Add(1)
	return t.ctx, t.tasks.Done, nil
}

// lasting also checks the term's context, so that a pause of the process is detected.
type lasting struct {
	context.Context //nolint:containedctx // lasting is itself a context
	leading         context.Context
	cancel          context.CancelCauseFunc
}

func (c *lasting) Err() error {
	if c.leading.Err() != nil {
		c.cancel(context.Cause(c.leading))
	}
	return c.Context.Err()
}
