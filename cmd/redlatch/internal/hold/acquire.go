package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/engine"
	core "github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// undoLimit bounds the time to undo a failed attempt, in addition to --wait.
const undoLimit = 500 * time.Millisecond

type held struct {
	*lockFlags

	hold  *rlock.Hold
	lock  locker
	lost  context.Context // canceled when the hold ends
	since time.Time       // a moment at which the lock was held

	srv    *connect.Server
	client *redlatch.Client
}

// grace returns the time between SIGTERM and SIGKILL, which ends before the lease expires.
func (h *held) grace() time.Duration {
	return grace(engine.EngineOf(h.client).LossMargin(cmp.Or(h.lease, h.watchdog)))
}

func (h *held) disconnect() { _ = h.client.Close() }

var errNotNeeded = errors.New("it is no longer needed")

// acquire connects and acquires the lock. It returns errNotNeeded if over is closed first.
func (o *lockFlags) acquire(parent context.Context, name string, signals <-chan os.Signal, over <-chan struct{}) (*held, error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	caught := make(chan error, 1)
	go func() {
		defer close(caught)
		select {
		case sig := <-signals:
			caught <- &cli.ExitError{Code: cli.SignalCode(sig)}
			cancel()
		case <-over:
			caught <- errNotNeeded
			cancel()
		case <-ctx.Done():
		}
	}()
	h, err := o.open(ctx, name)
	cancel()
	stopped := <-caught
	switch {
	case err == nil && (stopped == nil || errors.Is(stopped, errNotNeeded)):
		h.lost = h.hold.Context(parent)
		return h, nil
	case stopped == nil:
		return nil, err
	case err == nil:
		_ = h.hold.Unlock() // if this fails, the lease expires
		h.disconnect()
	}
	return nil, stopped
}

func (o *lockFlags) open(ctx context.Context, name string) (*held, error) {
	if err := limits.Name(name); err != nil {
		return nil, err
	}
	connecting, connected := o.connecting(ctx)
	defer connected()
	srv, err := o.server(connecting)
	if err != nil {
		return nil, &cli.ExitError{Code: cli.CodeRunFailed, Err: err}
	}
	client, err := srv.Open(connecting, redlatch.WithWatchdogTimeout(o.watchdog))
	if err != nil {
		return nil, err
	}
	o.setLabel(engine.EngineOf(client))
	engine.EngineOf(client).Outer = outer()
	lock, hold, err := o.lockOrPermit(ctx, srv, client, name)
	if err != nil {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = engine.EngineOf(client).CloseWithin(undoLimit) // the first error is more useful
		}()
		err = o.notTaken(ctx, srv, name, err)
		<-closed
		return nil, err
	}
	return &held{lockFlags: o, hold: hold, lock: lock, since: time.Now(), srv: srv, client: client}, nil
}

// server ignores the current context: jobs run later and unattended, and another terminal may have changed it.
func (o *lockFlags) server(ctx context.Context) (*connect.Server, error) {
	if c, err := o.Choose(); err == nil && c.From == cli.FromCurrent {
		return nil, errors.New("run and hold do not use the current context: name the server with --context, --redis, REDLATCH_CONTEXT or REDIS_URL")
	}
	return o.Server(ctx)
}

// setLabel must be called before the first lock writes the label.
func (o *lockFlags) setLabel(e *engine.Engine) {
	e.Label = engine.DefaultLabel(o.program)
	if o.labeled {
		e.Label, e.LabelOptional = o.label, false
	}
}

func (o *lockFlags) take(ctx context.Context, lock locker) (*rlock.Hold, error) {
	var opts []rlock.Option
	if o.lease > 0 {
		opts = append(opts, rlock.WithLease(o.lease))
	}
	if o.maxHold > 0 {
		opts = append(opts, rlock.WithMaxHold(o.maxHold))
	}
	if o.try {
		return lock.TryLock(ctx, opts...)
	}
	if o.bounded {
		opts = append(opts, rlock.WithWait(o.wait))
	}
	return lock.Lock(ctx, opts...)
}

func (o *lockFlags) notTaken(ctx context.Context, srv *connect.Server, name string, err error) error {
	var refusal *transport.ServerError
	var odd *inspect.NotLock
	var replica *connect.OnReplica
	if o.permits != "" {
		if refused := o.noPermit(err); refused != nil {
			return refused
		}
	}
	switch {
	case errors.As(err, &odd), errors.As(err, &replica):
	case errors.Is(err, redlatch.ErrNotAcquired):
		return cli.Errorf(o.conflict, "lock %q is %s", name, o.heldBy(ctx, srv, err))
	case errors.Is(err, rfencedlock.ErrCounter):
		return fmt.Errorf("lock %q: cannot increment its token counter: the key %q must contain a non-negative integer",
			name, protocol.TokenKey(name))
	case errors.Is(err, redlatch.ErrWrongType) && (o.read || o.write):
		return fmt.Errorf("lock %q: the key is not a read/write lock; it may be a plain lock of this name", name)
	case errors.Is(err, redlatch.ErrWrongType) && !errors.As(err, &refusal): // the error names the other program's hash
	case errors.Is(err, redlatch.ErrWrongType):
		err = inspect.WrongType(ctx, srv, name)
	case connect.Denied(err):
		return cli.Errorf(cli.CodeRunFailed, "Redis at %s rejected the request: %s", srv, diagnosis.Denied(ctx, srv, name, err, o.needs()...))
	case errors.Is(err, redlatch.ErrNotSent), errors.Is(err, redlatch.ErrUncertain), errors.As(err, &refusal):
		err = srv.Problem(err)
	}
	return err
}

func (o *lockFlags) heldBy(ctx context.Context, srv *connect.Server, err error) string {
	var at *redlatch.LockError
	if !errors.As(err, &at) {
		return "held by another owner"
	}
	if o.fair && at.TTL == 0 && at.Holder.IsZero() {
		return "free, but other owners are queued for it"
	}
	said := "held by another owner"
	if !at.Holder.IsZero() {
		said = "held by " + labeled(ctx, srv, at.Holder)
	}
	switch {
	case at.TTL > 0:
		return said + "; its lease ends in " + limits.Show(at.TTL, 100*time.Millisecond) + " unless renewed"
	case at.TTL == redlatch.NoTTL:
		return said + " without a lease, until released"
	}
	return said
}

// labeled returns a holder's owner with its label, if that can be read in time.
func labeled(ctx context.Context, srv *connect.Server, holder codec.Owner) string {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	owner, label := holder.String(), ""
	_ = connect.Use(ctx, srv.Dial, func(c redis.Conn) error {
		labels, err := inspect.Labels(c, []string{owner})
		label = labels[owner]
		return err
	})
	return inspect.OwnerAnd(owner, label)
}

// needs returns the IDs of the acl needs that the flags require, in a fixed order.
func (o *lockFlags) needs() []string {
	needs := []string{acl.Plain}
	for _, need := range []struct {
		id string
		is bool
	}{
		{acl.Fair, o.fair}, {acl.Tokens, o.fenced}, {acl.Semaphores, o.permits != ""}, {acl.ReadWrite, o.read || o.write},
	} {
		if need.is {
			needs = append(needs, need.id)
		}
	}
	return needs
}

func (h *held) why(ctx context.Context, err error) string {
	if connect.Denied(err) {
		return diagnosis.Denied(ctx, h.srv, h.lock.Name(), err, h.needs()...)
	}
	return sanitize.WithoutPrefix(connect.Reason(err))
}

func (h *held) owner() string {
	if owner := h.hold.Owner(); !owner.IsZero() {
		return owner.String()
	}
	text, _ := core.Of(h.hold).Request().Owner.(string)
	return text
}

func (h *held) token() string {
	if token := core.Of(h.hold).Token(); token > 0 {
		return strconv.FormatInt(token, 10)
	}
	return ""
}

const (
	envLock   = "REDLATCH_LOCK"
	envOwner  = "REDLATCH_OWNER"
	envPermit = "REDLATCH_PERMIT"
	envToken  = "REDLATCH_TOKEN" //nolint:gosec // the name of a variable, not a secret
	// The socket and the ID of the process that holds the lock in the background.
	envHold = "REDLATCH_HOLD"
	envPID  = "REDLATCH_HOLD_PID"
	envLoss = "REDLATCH_LOSS"
	// envOuter contains the owners of the holds around envOwner, separated by spaces.
	envOuter = "REDLATCH_OUTER"
)

var variables = []string{envLock, envOwner, envPermit, envToken, envHold, envPID, envOuter}

// outer returns the owners of the holds that this process was started in.
func outer() []string { return strings.Fields(os.Getenv(envOwner) + " " + os.Getenv(envOuter)) }

func (h *held) environment() []string {
	id := envOwner
	if h.hold.Owner().IsZero() {
		id = envPermit
	}
	env := []string{envLock + "=" + h.lock.Name(), id + "=" + h.owner()}
	if token := h.token(); token != "" {
		env = append(env, envToken+"="+token)
	}
	if outer := outer(); len(outer) > 0 {
		env = append(env, envOuter+"="+strings.Join(outer, " "))
	}
	return append(env, h.Environment()...)
}

type locker interface {
	Name() string
	Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	Resume(ctx context.Context, owner codec.Owner, opts ...rlock.Option) (*rlock.Hold, error)
}

func (o *lockFlags) lock(client *redlatch.Client, name string) locker {
	switch {
	case o.fenced && o.fair:
		return fenced{rfencedlock.NewFair(client, name)}
	case o.fenced:
		return fenced{rfencedlock.New(client, name)}
	case o.fair:
		return rfairlock.New(client, name)
	case o.read:
		return rreadwritelock.New(client, name).Read()
	case o.write:
		return rreadwritelock.New(client, name).Write()
	}
	return rlock.New(client, name)
}

type fenced struct{ lock *rfencedlock.Lock }

func (f fenced) Name() string { return f.lock.Name() }

func (f fenced) Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Lock(ctx, opts...))
}

func (f fenced) TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.TryLock(ctx, opts...))
}

func (f fenced) Resume(ctx context.Context, owner codec.Owner, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Resume(ctx, owner, opts...))
}

func inner(h *rfencedlock.Hold, err error) (*rlock.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

func (o *lockFlags) takePermit(ctx context.Context, client *redlatch.Client) (locker, *rlock.Hold, error) {
	sem := rsemaphore.NewExpirable(client, o.semaphore)
	setting, set := o.connecting(ctx)
	err := o.setPermits(setting, sem)
	set()
	if err != nil {
		return nil, nil, err
	}
	lock := &rlock.Lock{}
	*core.Of(lock) = *core.Of(sem)
	hold, err := o.take(ctx, lock)
	return lock, hold, err
}

// setPermits sets the number of permits. If no permit is in use, it does not overwrite a different
// number in the key, because the key may be a counter or a latch.
func (o *lockFlags) setPermits(ctx context.Context, sem *rsemaphore.Expirable) error {
	made, err := sem.TrySetPermits(ctx, o.count)
	if made || err != nil {
		return err
	}
	in, err := sem.Inspect(ctx)
	switch {
	case err != nil:
		return err
	case in.Available+in.Acquired == o.count:
		return nil
	case in.Acquired == 0 && in.Exists:
		return fmt.Errorf("semaphore %q: the key contains %d, and no permit is in use: it may belong to "+
			"another program. If it is this semaphore with another number of permits, delete the key", o.semaphore, in.Available)
	}
	return sem.SetPermits(ctx, o.count)
}

// noPermit describes errors that only semaphores return.
func (o *lockFlags) noPermit(err error) error {
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired) && o.count == 1:
		return cli.Errorf(o.conflict, "semaphore %q: its only permit is in use", o.semaphore)
	case errors.Is(err, redlatch.ErrNotAcquired):
		return cli.Errorf(o.conflict, "semaphore %q: all %d permits are in use", o.semaphore, o.count)
	case errors.Is(err, redlatch.ErrWrongType):
		return fmt.Errorf("semaphore %q: the key is not a semaphore; it may be a lock of this name", o.semaphore)
	}
	return nil
}
