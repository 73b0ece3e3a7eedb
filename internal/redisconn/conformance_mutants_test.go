package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/transport"
)

// dones wraps every done callback passed to Start.
func (b *broken) dones(wrap func(call *transport.Call, done transport.Done) transport.Done) {
	b.start = func(call *transport.Call, done transport.Done) { b.Redigo.Start(call, wrap(call, done)) }
}

// outcomes changes every outcome of Start.
func (b *broken) outcomes(change func(reply any, err error) (any, error)) {
	b.dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) { done(change(reply, err)) }
	})
}

// relabel replaces each error that wraps the error from with one that wraps the error to.
func relabel(from, to error) func(b *broken) {
	return func(b *broken) {
		b.outcomes(func(reply any, err error) (any, error) {
			if errors.Is(err, from) {
				err = fmt.Errorf("%w: was %v", to, err) //nolint:errorlint // errors.Is must not find the old error
			}
			return reply, err
		})
	}
}

func twice(_ *transport.Call, done transport.Done) transport.Done {
	return func(reply any, err error) {
		done(reply, err)
		done(reply, err)
	}
}

// awaited starts call and returns a channel that is closed after done has returned.
func (b *broken) awaited(call *transport.Call, done transport.Done) (over chan struct{}) {
	over = make(chan struct{})
	b.Redigo.Start(call, func(reply any, err error) {
		done(reply, err)
		close(over)
	})
	return over
}

// copied returns a copy of call with its own state, so that Abandon and Claim on the original do
// not affect it.
func copied(call *transport.Call) *transport.Call {
	return &transport.Call{Script: call.Script, Command: call.Command, NumKeys: call.NumKeys, Args: call.Args, Urgent: call.Urgent}
}

func copies(b *broken) {
	b.start = func(call *transport.Call, done transport.Done) { b.Redigo.Start(copied(call), done) }
}

func repeats(b *broken) {
	b.start = func(call *transport.Call, done transport.Done) {
		b.Redigo.Start(call, func(reply any, err error) {
			if errors.Is(err, transport.ErrUncertain) && !errors.Is(err, transport.ErrClosed) {
				b.Redigo.Start(call, done)
				return
			}
			done(reply, err)
		})
	}
}

var callMutants = []mutant{
	{name: "done runs twice", in: "calls/a plain command gets its reply", plant: func(b *broken) { b.dones(twice) }},
	{name: "scripts are not sent again", in: "scripts/a script runs after the server has forgotten it", plant: func(b *broken) {
		b.start = func(call *transport.Call, done transport.Done) {
			if call.Script != nil {
				call = &transport.Call{Command: "EVALSHA", Args: append([]any{call.Script.SHA(), call.NumKeys}, call.Args...)}
			}
			b.Redigo.Start(call, done)
		}
	}},
	{name: "errors lose their code", in: "calls/a server error has its code, and the connection stays open", plant: func(b *broken) {
		b.outcomes(func(reply any, err error) (any, error) {
			var se *transport.ServerError
			if errors.As(err, &se) {
				err = errors.New(se.Text)
			}
			return reply, err
		})
	}},
	{name: "errors inside arrays are text", in: "scripts/a script's reply arrives, of every kind", plant: func(b *broken) {
		b.outcomes(func(reply any, err error) (any, error) {
			all, _ := reply.([]any)
			for i := range all {
				if se, ok := all[i].(*transport.ServerError); ok {
					all[i] = se.Text
				}
			}
			return reply, err
		})
	}},
	{name: "urgent calls do not overtake", in: "calls/urgent calls overtake calls that wait for a connection", plant: func(b *broken) {
		b.start = func(call *transport.Call, done transport.Done) {
			call.Urgent = false
			b.Redigo.Start(call, done)
		}
	}},
	{name: "Abandon is ignored", in: "abandoned/a withdrawn call ends as not sent and never runs", plant: copies},
	{name: "Claim is not called", in: "calls/a call counts as sent before its reply arrives", plant: copies},
	{name: "late replies are lost", in: "abandoned/a call abandoned after it was sent gets its late reply", plant: func(b *broken) {
		b.dones(func(call *transport.Call, done transport.Done) transport.Done {
			return func(reply any, err error) {
				if !call.Abandoned() {
					done(reply, err)
				}
			}
		})
	}},
	{name: "every done on one goroutine", in: "abandoned/a call abandoned after it was sent gets its late reply", plant: func(b *broken) {
		var mu sync.Mutex
		b.dones(func(_ *transport.Call, done transport.Done) transport.Done {
			return func(reply any, err error) {
				mu.Lock()
				defer mu.Unlock()
				done(reply, err)
			}
		})
	}},
	{name: "a reply in a hundred is another's", in: "load/every call ends once, with its own reply", plant: func(b *broken) {
		var n atomic.Int64
		b.outcomes(func(reply any, err error) (any, error) {
			if n.Add(1)%100 == 50 {
				reply = int64(0)
			}
			return reply, err
		})
	}},
	{name: "Start waits", in: "faults/Start does not block while the server is frozen", plant: func(b *broken) {
		b.start = func(call *transport.Call, done transport.Done) { <-b.awaited(call, done) }
	}},
	{name: "uncertain is called not sent", in: "faults/a call that ran and lost its reply is uncertain, and is not repeated", plant: relabel(transport.ErrUncertain, transport.ErrNotSent)},
	{name: "not sent is called uncertain", in: "faults/calls of a server that is down end as not sent", plant: relabel(transport.ErrNotSent, transport.ErrUncertain)},
	{name: "Close does not say closed", in: "close/Start after Close ends as not sent", plant: relabel(transport.ErrClosed, transport.ErrNotSent)},
	{name: "uncertain calls are repeated", in: "faults/a call that ran and lost its reply is uncertain, and is not repeated", plant: repeats},
	{name: "uncertain calls repeated under load", in: "load/every call ends once, with its own reply, while connections are cut", plant: repeats},
	{name: "Close does not wait", in: "close/Close ends calls in flight as uncertain", plant: func(b *broken) {
		b.close = func() error {
			time.AfterFunc(100*time.Millisecond, func() { _ = b.Redigo.Close() }) // always nil
			return nil
		}
	}},
}

// leading makes Lead start calls and then call wait.
func (b *broken) leading(wait func(ctx context.Context, over <-chan struct{})) {
	b.lead = func(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
		over := b.awaited(call, done)
		caller.Started()
		wait(ctx, over)
	}
}

var leadMutants = []mutant{
	{name: "wrappers are bypassed", in: "lead/Leads: the Start of a wrapper is not bypassed", plant: func(b *broken) {
		b.leads = func(transport.Transport) bool { return true }
	}},
	{name: "Lead ignores its context", in: "lead/Lead: an ended context ends it, and the call continues", plant: func(b *broken) {
		b.leading(func(_ context.Context, over <-chan struct{}) { <-over })
	}},
	{name: "Lead cannot be interrupted", in: "lead/Lead: Interrupt ends it, and the call continues", plant: func(b *broken) {
		b.leading(func(ctx context.Context, over <-chan struct{}) {
			select {
			case <-over:
			case <-ctx.Done():
			}
		})
	}},
	{name: "Lead does not notify its caller", in: "lead/Lead: the caller is notified of the start, once", plant: func(b *broken) {
		b.lead = func(_ context.Context, call *transport.Call, done transport.Done, _ builtin.Caller) {
			b.Redigo.Start(call, done)
		}
	}},
	{name: "Lead runs done twice", in: "lead/Lead: every call ends once, with its own reply", plant: func(b *broken) {
		b.lead = func(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
			b.Redigo.Lead(ctx, call, twice(call, done), caller)
		}
	}},
}

// forwarded is a subscription with different events or a different Close.
type forwarded struct {
	transport.Subscription
	events chan transport.Event // if nil, the subscription's
	close  func()
}

func (f *forwarded) Events() <-chan transport.Event {
	if f.events == nil {
		return f.Subscription.Events()
	}
	return f.events
}

func (f *forwarded) Close() { f.close() }

// forwards replaces each subscription with the result of forward.
func (b *broken) forwards(forward func(sub transport.Subscription) *forwarded) {
	b.subscribe = func(ctx context.Context, channel string) (transport.Subscription, error) {
		sub, err := b.Redigo.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		return forward(sub), nil
	}
}

func noGaps(b *broken) {
	b.forwards(func(sub transport.Subscription) *forwarded {
		f := &forwarded{sub, make(chan transport.Event, 1), sub.Close}
		go func() {
			defer close(f.events)
			for e := range sub.Events() {
				if !e.Gap {
					f.events <- e
				}
			}
		}()
		return f
	})
}

var subscriptionMutants = []mutant{
	{name: "Subscribe does not wait", in: "subscriptions/a message published right after Subscribe returned is seen", plant: func(b *broken) {
		b.subscribe = func(ctx context.Context, channel string) (transport.Subscription, error) {
			other, err := b.Redigo.Subscribe(ctx, "another channel")
			if err != nil {
				return nil, err
			}
			f := &forwarded{other, make(chan transport.Event, 1), other.Close}
			time.AfterFunc(100*time.Millisecond, func() {
				if sub, err := b.Redigo.Subscribe(context.WithoutCancel(ctx), channel); err == nil {
					for e := range sub.Events() {
						f.events <- e
					}
				}
			})
			return f, nil
		}
	}},
	{name: "subscriptions end with their context", in: "subscriptions/messages arrive with their payload", plant: func(b *broken) {
		b.subscribe = func(ctx context.Context, channel string) (transport.Subscription, error) {
			sub, err := b.Redigo.Subscribe(ctx, channel)
			if err == nil {
				context.AfterFunc(ctx, sub.Close)
			}
			return sub, err
		}
	}},
	{name: "a listener blocks the others", in: "subscriptions/a stuck listener does not delay others", plant: func(b *broken) {
		var mu sync.Mutex
		b.forwards(func(sub transport.Subscription) *forwarded {
			f := &forwarded{sub, make(chan transport.Event), sub.Close}
			go func() {
				for e := range sub.Events() {
					mu.Lock()
					f.events <- e
					mu.Unlock()
				}
			}()
			return f
		})
	}},
	{name: "subscriptions are never closed", in: "subscriptions/closed subscriptions end on the server", plant: func(b *broken) {
		b.forwards(func(sub transport.Subscription) *forwarded { return &forwarded{sub, nil, func() {}} })
	}},
	{name: "one Close closes all", in: "subscriptions/subscriptions to one channel are independent", plant: func(b *broken) {
		all, end := context.WithCancel(context.Background())
		b.forwards(func(sub transport.Subscription) *forwarded {
			context.AfterFunc(all, sub.Close)
			return &forwarded{sub, nil, end}
		})
	}},
	{name: "contexts are ignored", in: "subscriptions/Subscribe returns when its context ends while the server is frozen", plant: func(b *broken) {
		b.subscribe = func(ctx context.Context, channel string) (transport.Subscription, error) {
			slow, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2900*time.Millisecond)
			defer cancel()
			return b.Redigo.Subscribe(slow, channel)
		}
	}},
	{name: "gaps are swallowed", in: "gaps/every subscription gets a gap after each cut, and later messages", plant: noGaps},
	{name: "wake-ups are lost", in: "gaps/no wake-up is lost while connections are cut", plant: noGaps},
}

func zeros(b *broken) {
	b.listeners = func(ctx context.Context, channels ...string) ([]int64, error) {
		if counts, err := b.Redigo.Listeners(ctx, channels...); err == nil {
			return counts, nil
		}
		return make([]int64, len(channels)), nil
	}
}

// errorsOf changes every error from Replicate.
func (b *broken) errorsOf(change func(err error) error) {
	b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
		b.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) { done(reply, have, change(err)) })
	}
}

func noFence(b *broken) { b.fence = func(context.Context, *transport.Call) error { return nil } }

var optionalMutants = []mutant{
	{name: "counts are zeros when no server answers", in: "optional/Listeners: an unknown count is an error, not zero", plant: zeros},
	{name: "counts are zeros when it is forbidden", in: "optional/Listeners: a refused count is an error, not zero", plant: zeros},
	{name: "counts are in the wrong order", in: "optional/Listeners: returns one number per channel, in order, 0 without subscribers", plant: func(b *broken) {
		b.listeners = func(ctx context.Context, channels ...string) ([]int64, error) {
			counts, err := b.Redigo.Listeners(ctx, channels...)
			slices.Reverse(counts)
			return counts, err
		}
	}},
	{name: "a count ignores its context", in: "optional/Listeners: an ended context ends it", plant: func(b *broken) {
		b.listeners = func(ctx context.Context, channels ...string) ([]int64, error) {
			return b.Redigo.Listeners(context.WithoutCancel(ctx), channels...)
		}
	}},
	{name: "only the first channels are counted", in: "optional/Listeners: many channels are counted together", plant: func(b *broken) {
		b.listeners = func(ctx context.Context, channels ...string) ([]int64, error) {
			counts, err := b.Redigo.Listeners(ctx, channels...)
			clear(counts[min(len(counts), 100):])
			return counts, err
		}
	}},
	{name: "WAIT on the connection of all", in: "replicas/Replicate: other calls do not wait for replicas", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
			b.Redigo.Start(call, func(any, error) {})
			wait := &transport.Call{Command: "WAIT", Args: []any{replicas, timeout.Milliseconds()}}
			b.Redigo.Start(wait, func(_ any, err error) { done(nil, 0, err) })
		}
	}},
	{name: "one WAIT after the other", in: "replicas/Replicate: many calls share the time of one", plant: func(b *broken) {
		turn := make(chan struct{}, 1)
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
			go func() {
				turn <- struct{}{}
				b.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
					done(reply, have, err)
					<-turn
				})
			}()
		}
	}},
	{name: "replicas count before they have the write", in: "replicas/Replicate: a replica counts only once it has the write", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
			b.Redigo.Replicate(call, 0, timeout, func(reply any, _ int64, err error) { done(reply, int64(replicas), err) })
		}
	}},
	{name: "WAIT without an end", in: "replicas/Replicate: its timeout ends the wait, and the call has run", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
			b.Redigo.Replicate(call, replicas, timeout+time.Minute, done)
		}
	}},
	{name: "errors are no replicas", in: "replicas/Replicate: a call that the server refuses is an error", plant: func(b *broken) {
		b.errorsOf(func(error) error { return nil })
	}},
	{name: "calls to replicas cannot be withdrawn", in: "replicas/Replicate: a withdrawn call never runs", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
			b.Redigo.Replicate(copied(call), replicas, timeout, done)
		}
	}},
	{name: "Close does not end WAIT", in: "replicas/Replicate: Close ends it", plant: func(b *broken) {
		b.errorsOf(func(err error) error {
			if errors.Is(err, transport.ErrClosed) {
				return transport.ErrUncertain
			}
			return err
		})
	}},
	{name: "Fence does nothing", in: "optional/Fence: a call whose connection was cut never runs afterwards", plant: noFence},
	{name: "Fence takes what it is given", in: "optional/Fence: a call that was never sent, or by another client, cannot be fenced", plant: noFence},
	{name: "Reconnected is closed from the start", in: "optional/Reconnected: the channel is closed at the next reconnect, and not before", plant: func(b *broken) {
		closed := make(chan struct{})
		close(closed)
		b.reconnected = func() <-chan struct{} { return closed }
	}},
	{name: "slots ignore tags", in: "optional/Slot: keys have the same slots as in Redis", plant: func(b *broken) {
		b.slot = func(key string) int { return transport.HashSlot(strings.ReplaceAll(key, "{", "[")) }
	}},
}

var mutants = slices.Concat(callMutants, leadMutants, subscriptionMutants, optionalMutants)
