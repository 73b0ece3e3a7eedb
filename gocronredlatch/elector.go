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

// ElectorConfig says how an [Elector] is elected. Only Name must be set.
type ElectorConfig struct {
	// Name is that of the lock, the same in all processes.
	Name string

	// Fair lets processes lead in the order in which they came. All must have the same. Default: the
	// first that gets the lock leads.
	Fair bool

	// Skew is how long a process that has begun to lead does no job yet: more than what the clocks
	// differ by. Without, a job that the leader before had done may be done again when its tick comes
	// later here. Default: it does jobs at once.
	Skew time.Duration

	// OnError gets each error that does not end Run, as leader.Config has it. Default: the client's
	// logger gets them as warnings.
	OnError func(err error)
}

// ErrNotLeader says that another process leads, or none, so that a run was skipped.
var ErrNotLeader = errors.New("gocronredlatch: this process does not lead")

// Elector is a gocron.Elector: the process that leads does all jobs. [Elector.Run] makes the process
// a candidate. All methods are safe for concurrent use.
type Elector struct {
	client *redlatch.Client
	config ElectorConfig

	mu   sync.Mutex
	term *term // while this process leads
}

// term is one leadership.
type term struct {
	ctx   context.Context //nolint:containedctx // it ends with the term
	since time.Time
	tasks sync.WaitGroup // Add is called under the mutex of the Elector, while the term is there
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector that is no candidate before Run is called. It returns
// redlatch.ErrInvalid without a Name, and for a Skew below zero. It sends nothing.
func NewElector(client *redlatch.Client, config ElectorConfig) (*Elector, error) {
	if config.Name == "" || config.Skew < 0 {
		return nil, fmt.Errorf("%w: an Elector has a Name, and a Skew that is not below zero", redlatch.ErrInvalid)
	}
	return &Elector{client: client, config: config}, nil
}

// Run makes this process a candidate until ctx ends. Then the contexts of tasks that run end, and it
// waits for these to return before it lets another process lead. To let tasks finish, shut the
// scheduler down first. It returns what leader.Run returns, and sends what that sends. Do not call
// it again before it has returned.
func (e *Elector) Run(ctx context.Context) error {
	return leader.Run(ctx, e.client, e.config.Name, leader.Config{
		Lead: e.lead, Fair: e.config.Fair, OnError: e.config.OnError,
	})
}

// lead lets tasks run until ctx ends, and returns when the last one has returned.
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

// IsLeader is for gocron, which asks it at each tick. It returns nil when this process leads, and has
// led for longer than Skew; else [ErrNotLeader]. It sends nothing.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leads()
}

// leads is IsLeader under the mutex.
func (e *Elector) leads() error {
	switch {
	case e.term == nil:
		return ErrNotLeader
	case e.term.ctx.Err() != nil:
		return fmt.Errorf("%w any more: %w", ErrNotLeader, context.Cause(e.term.ctx))
	case time.Since(e.term.since) < e.config.Skew:
		return fmt.Errorf("%w for longer than the clocks may differ", ErrNotLeader)
	}
	return nil
}

// Task returns a task whose context ends when this process leads no more, with the cause as
// leader.Config has it, and when gocron ends the job. Fn is not called when the process does not
// lead: the run fails with [ErrNotLeader] then. A panic of fn goes on.
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

// begin counts a task of this term. It returns the context of the term, and what to call at the end.
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

// lasting is a context that has ended at the first look after the term has, also when the process
// was stopped: the context of the term asks the clocks.
type lasting struct {
	context.Context //nolint:containedctx // it is one
	leading         context.Context
	cancel          context.CancelCauseFunc
}

// Err returns why the context has ended.
func (c *lasting) Err() error {
	if c.leading.Err() != nil {
		c.cancel(context.Cause(c.leading))
	}
	return c.Context.Err()
}
