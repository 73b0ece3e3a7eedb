package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Resolver handles a call whose Run returned an error that wraps ErrUncertain.
type Resolver interface {
	// Late is called once, on any goroutine, with the call's final reply or error. It must not block. ErrNotSent means
	// that the call did not run, and ErrUncertain that it may have run or may still run. Late returns the follow-up
	// action, or nil if the call is settled.
	Late(reply any, err error) *InDoubt
}

// Follower is notified when a call has been started. It is an interface because a method value allocates.
type Follower interface {
	// Started is called once, on the goroutine that started the call.
	Started()
}

// Attempt is one call and the wait for its reply. It can be run only once.
type Attempt struct {
	Call transport.Call
	// Sent, if not nil, is notified once the call has been started. Calls that are started later reach the server after
	// it.
	Sent Follower

	engine   *Engine
	resolver Resolver
	state    atomic.Uint32
	result   chan outcome   // buffered
	alarm    chan struct{}  // buffered; receives on a timeout or when the client closes
	done     transport.Done // bound once, to save allocations
	closes   bool           // closing the client ends the wait
	leads    atomic.Bool    // true while an alarm must interrupt Lead

	// Guarded by timeouts.mu.
	prev, next *Attempt
	due        time.Duration
	listed     bool
}

type outcome struct {
	reply any
	err   error
}

var errNotYet = errors.New("not sent")

const (
	attemptAwaited uint32 = iota
	attemptAnswered
	attemptLeft
)

// Attempt returns an attempt with an empty call.
func (e *Engine) Attempt() *Attempt {
	if a, ok := e.attempts.Get().(*Attempt); ok {
		return a
	}
	a := &Attempt{engine: e, result: make(chan outcome, 1), alarm: make(chan struct{}, 1)}
	a.done = a.complete
	return a
}

func (a *Attempt) free() {
	clear(a.Call.Args)
	a.Call = transport.Call{Args: a.Call.Args[:0]}
	a.resolver, a.Sent, a.closes = nil, nil, false
	a.state.Store(attemptAwaited)
	a.engine.attempts.Put(a)
}

// Run starts the call and waits for its outcome for at most one command timeout, or until ctx ends or the client begins
// to close. An error wraps ErrNotSent if the call certainly did not run, or ErrUncertain if it may have run, and also
// the cause, such as the context's error or ErrClosed. If r is not nil, it handles the final outcome after
// ErrUncertain. The attempt must not be used after Run.
func (a *Attempt) Run(ctx context.Context, r Resolver) (any, error) {
	a.resolver = r
	a.closes = true
	return a.run(ctx, a.engine.Command)
}

// RunFor is like Run, but for calls that may be repeated. It waits for up to bound, even if the client is closing.
func (a *Attempt) RunFor(bound time.Duration, r Resolver) (any, error) {
	a.resolver = r
	return a.run(context.Background(), bound)
}

// run allows only half of bound for sending the call, because a reply to a call that is sent at the last moment would
// be too late.
func (a *Attempt) run(ctx context.Context, bound time.Duration) (any, error) {
	e, rest := a.engine, bound/2
	e.timeouts.add(a, bound-rest)
	if e.leader != nil {
		a.leads.Store(true)
		e.leader.Lead(ctx, &a.Call, a.done, a)
		a.leads.Store(false)
	} else {
		e.Transport.Start(&a.Call, a.done)
		a.Started()
	}
	for {
		var why error
		select {
		case out := <-a.result:
			return a.finish(out)
		case <-a.alarm:
			if len(a.result) > 0 {
				continue
			}
		case <-ctx.Done():
			why = EndOf(ctx)
		}
		switch {
		case why != nil:
		case a.closes && e.IsClosing():
			why = ErrClosed
		case a.Call.Withdraw():
			why = fmt.Errorf("%w within %v", errNotYet, (bound - bound/2).Round(time.Millisecond))
		case rest > 0:
			e.timeouts.add(a, rest)
			rest = 0
			continue
		default:
			why = fmt.Errorf("no reply within %v", bound.Round(time.Millisecond))
		}
		return a.leave(why)
	}
}

// Started implements builtin.Caller.
func (a *Attempt) Started() {
	if a.Sent != nil {
		a.Sent.Started()
	}
}

// Waits implements builtin.Caller.
func (a *Attempt) Waits() bool { return len(a.result) == 0 && len(a.alarm) == 0 }

func (a *Attempt) finish(out outcome) (any, error) {
	a.engine.timeouts.remove(a)
	if errors.Is(out.err, ErrUncertain) {
		a.resolve(out.reply, out.err)
	} else {
		a.free()
	}
	return out.reply, out.err
}

// leave ends the wait without an outcome. Once the state is attemptLeft, complete may free the attempt at any time.
func (a *Attempt) leave(why error) (any, error) {
	a.engine.timeouts.remove(a)
	withdrawn := a.Call.Abandon()
	counts := a.delaysClose()
	if counts {
		a.engine.Join()
	}
	if !a.state.CompareAndSwap(attemptAwaited, attemptLeft) {
		if counts {
			a.engine.Leave()
		}
		reply, err := a.finish(<-a.result)
		if err != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return reply, err
	}
	if withdrawn {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, why)
	}
	return nil, fmt.Errorf("%w: %w", ErrUncertain, why)
}

// delaysClose reports whether the outcome of a call that is no longer awaited matters.
func (a *Attempt) delaysClose() bool { return a.resolver != nil && a.Call.Abandoned() }

func (a *Attempt) complete(reply any, err error) {
	if a.state.CompareAndSwap(attemptAwaited, attemptAnswered) {
		a.result <- outcome{reply: reply, err: err}
		return
	}
	if e := a.engine; a.delaysClose() {
		a.resolve(reply, err)
		e.Leave()
	} else { // withdrawn, as Run has already reported, or without effect
		a.free()
	}
}

func (a *Attempt) resolve(reply any, err error) {
	var d *InDoubt
	if a.resolver != nil {
		d = a.resolver.Late(reply, err)
	}
	if d != nil && errors.Is(err, ErrUncertain) {
		d.attempt = a
	} else {
		a.free()
	}
	if d != nil {
		a.engine.Resolve(d)
	}
}

// timeouts wakes attempts when they time out or the client begins to close. They share one timer, because a timer for
// each call would be too expensive.
type timeouts struct {
	mu    sync.Mutex // guards the fields below; held briefly
	first *Attempt   // head of an unordered list
	waits int
	timer *time.Timer
	due   time.Duration // when the timer fires, by elapsed; 0 if never
}

var epoch = time.Now()

// elapsed is the clock that timeouts uses, because it is cheaper than a time.Time.
func elapsed() time.Duration { return time.Since(epoch) }

// add wakes a after d and, if a.closes is set, when the client begins to close. The caller must call remove.
func (t *timeouts) add(a *Attempt, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-a.alarm: // left over from an earlier add
	default:
	}
	if a.closes && a.engine.IsClosing() { // close may already have run
		a.wake()
		return
	}
	a.due = elapsed() + max(d, 0)
	if a.next = t.first; a.next != nil {
		a.next.prev = a
	}
	a.listed, t.first = true, a
	t.waits++
	t.arm(a.due)
}

// remove undoes add. No alarm is sent after it has returned.
func (t *timeouts) remove(a *Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.listed {
		t.unlink(a)
	}
}

// unlink removes a from the list. mu must be held.
func (t *timeouts) unlink(a *Attempt) {
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		t.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	a.prev, a.next, a.listed = nil, nil, false
	t.waits--
}

func (t *timeouts) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits
}

// arm sets the timer to fire at due, unless it fires earlier. mu must be held.
func (t *timeouts) arm(due time.Duration) {
	if t.due != 0 && t.due <= due {
		return
	}
	t.due = due
	in := due - elapsed()
	if t.timer == nil {
		t.timer = time.AfterFunc(in, t.fire)
		return
	}
	t.timer.Reset(in)
}

// among is the delay that each waiting attempt may add to a timeout, which limits the time spent scanning the attempts.
const among = 250 * time.Nanosecond

func (t *timeouts) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := elapsed()
	t.due = 0
	var next time.Duration
	for a := t.first; a != nil; {
		following := a.next
		switch {
		case a.due <= now:
			t.unlink(a)
			a.wake()
		case next == 0 || a.due < next:
			next = a.due
		}
		a = following
	}
	if next != 0 {
		t.arm(max(next, now+time.Duration(t.waits)*among))
	}
}

func (t *timeouts) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := t.first; a != nil; {
		following := a.next
		if a.closes {
			t.unlink(a)
			a.wake()
		}
		a = following
	}
}

// wake wakes an attempt that is not in the list. The attempt's alarm channel must be empty.
func (a *Attempt) wake() {
	a.alarm <- struct{}{}
	if a.leads.Load() {
		a.engine.leader.Interrupt(&a.Call)
	}
}
