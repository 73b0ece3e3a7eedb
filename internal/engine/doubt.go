package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Pauses between two questions about one doubt: short at first, because most
// doubts end as soon as the server can be reached again.
const (
	askSoon      = 250 * time.Millisecond
	askSoonUntil = 5 * time.Second
	askLater     = time.Second
)

// Doubt is a lock that may be held although nobody wants it.
type Doubt struct {
	// Name and Owner are for the log.
	Name, Owner string
	// Attempt is the call whose outcome is not known, nil when a definite
	// answer to Release ends the doubt. The settler frees it.
	Attempt *Attempt
	// Release fills the call that frees the lock if the owner holds it, and
	// that does nothing otherwise. Its reply is a release's. Nil: it is left.
	Release func(c *transport.Call)
	// GiveUp, if not nil, fills the call that takes the owner out of the queue,
	// which is run as often as Release. To a call that GiveUp of another doubt
	// about the same Queue has filled it adds this owner.
	GiveUp func(c *transport.Call)
	// Queue is which queue that is.
	Queue string
	// Moot, if not nil, is asked before each question: true ends the doubt, since
	// somebody else frees the lock.
	Moot func() bool
	// Lease is how long the doubt can matter.
	Lease time.Duration
	// Place grows from the front of a queue to its end, 0 when it is not known.
	Place int64
	// Done, if not nil, runs when the doubt is over.
	Done func()

	failed time.Time // when its departure failed first
}

// Settle ends a doubt in the background: it frees the lock as soon as it turns
// out to be held. It does not block.
//
// A call that was sent may still sit in the buffers of its old connection, or
// on the network, and run after any question asked on a new one. So one "not
// held" proves nothing, unless the old connection was killed on the server
// before. Where that is not possible, the question is repeated until the server
// has answered it for one lease.
func (e *Engine) Settle(d *Doubt) {
	e.ghosts.add(1)
	if !e.spawn(func() { e.settle(d) }) {
		e.Logger.Warn("redlatch: closed with an open outcome, a lock or a place in a queue may stay until its time is over",
			"lock", d.Name, "owner", d.Owner)
		d.over()
		e.ghosts.add(-1)
	}
}

func (d *Doubt) over() {
	if d.Done != nil {
		d.Done()
	}
}

// spawn runs f on a goroutine that Close waits for. It returns false when the
// client is closed.
func (e *Engine) spawn(f func()) bool {
	e.spawning.Lock()
	defer e.spawning.Unlock()
	if e.closed {
		return false
	}
	e.work.Go(f)
	return true
}

// Go runs f in the background. It returns false, and f does not run, when the
// client is closed. f must end soon.
func (e *Engine) Go(f func()) bool { return e.spawn(f) }

// settle runs until the doubt is over or the client is closed. The lease that a
// doubt lasts counts while the server answers: what a server that is away has
// yet to read, it may run when it comes back.
func (e *Engine) settle(d *Doubt) {
	defer e.ghosts.add(-1)
	defer d.over()
	if d.Attempt != nil {
		defer d.Attempt.Free()
	}
	began := time.Now()
	until := began.Add(d.Lease)
	certain := d.Attempt == nil
	for {
		certain = certain || e.fence(d)
		if d.Moot != nil && d.Moot() {
			e.Logger.Info("redlatch: open outcome left to whoever frees the lock", "lock", d.Name, "owner", d.Owner)
			return
		}
		freed, err := e.ask(d)
		switch {
		case err == nil && (freed || certain):
			e.Logger.Info("redlatch: open outcome settled", "lock", d.Name, "owner", d.Owner, "was_held", freed)
			return
		case err != nil && !retryable(err):
			e.Logger.Error("redlatch: open outcome cannot be settled, the lock may stay until its lease ends",
				"lock", d.Name, "owner", d.Owner, "error", err)
			return
		case err != nil && (!certain || d.GiveUp != nil && time.Since(began) < e.lasts(d)):
			until = time.Now().Add(d.Lease)
		}
		if errors.Is(err, ErrClosed) || time.Now().After(until) || !e.rest(time.Since(began)) {
			e.Logger.Warn("redlatch: open outcome given up", "lock", d.Name, "owner", d.Owner,
				"after", time.Since(began), "error", err)
			return
		}
	}
}

func retryable(err error) bool {
	return isUncertain(err) || Passing(err) || errors.Is(err, ErrClosed)
}

// ask runs the doubt's release and reports whether it freed the lock.
func (e *Engine) ask(d *Doubt) (freed bool, err error) {
	if d.Release != nil {
		answer, err := e.run(d.Release)
		if err != nil {
			return false, err
		}
		out, err := reply.Released(answer)
		if err != nil {
			return false, err
		}
		freed = out == reply.Free
	}
	if d.GiveUp != nil {
		_, err = e.run(d.GiveUp)
	}
	return freed, err
}

func (e *Engine) run(fill func(*transport.Call)) (any, error) {
	a := e.Attempt()
	fill(&a.Call)
	return a.RunFor(e.Command, nil)
}

// rest pauses between two questions: less when a connection comes back. It
// returns false when the client is closed.
func (e *Engine) rest(since time.Duration) bool {
	pause := askLater
	if since < askSoonUntil {
		pause = askSoon
	}
	timer := time.NewTimer(pause + rand.N(pause/5)) //nolint:gosec // spreading load needs no secrets
	defer timer.Stop()
	var back <-chan struct{}
	if r, ok := e.Transport.(transport.Reconnecter); ok {
		back = r.Reconnected()
	}
	select {
	case <-timer.C:
	case <-back:
	case <-e.quit:
		return false
	}
	return true
}

// fence makes sure that the doubt's call will not run any more, if it can. The
// calls of one connection share one fence.
func (e *Engine) fence(d *Doubt) bool { return e.Fence(d.Attempt) }

// Fence makes sure that an attempt's call will not run any more, if it can. It may
// take a command timeout.
func (e *Engine) Fence(a *Attempt) bool {
	f, ok := e.Transport.(transport.Fencer)
	if !ok {
		return false
	}
	conn := a.Call.Conn()
	kill := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), e.Command)
		defer cancel()
		err := f.Fence(ctx, &a.Call)
		if err != nil {
			e.Logger.Debug("redlatch: old connection not fenced", "connection", conn, "error", err)
		}
		return err == nil
	}
	if conn == 0 {
		kill() // nothing, but the transport may have to tell why it does not know
		return false
	}
	return e.fences.do(conn, kill)
}
