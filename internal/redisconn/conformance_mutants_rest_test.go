package redisconn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// forwarded is a subscription with other events, or another Close.
type forwarded struct {
	transport.Subscription
	events chan transport.Event // nil: the subscription's
	close  func()
}

func (f *forwarded) Events() <-chan transport.Event {
	if f.events == nil {
		return f.Subscription.Events()
	}
	return f.events
}

func (f *forwarded) Close() { f.close() }

// forwards puts what forward returns in place of each subscription.
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

// countsDropped counts each dropped event so many times.
func countsDropped(times int) func(b *broken) {
	return func(b *broken) {
		b.forwards(func(sub transport.Subscription) *forwarded {
			closed := make(chan struct{})
			f := &forwarded{sub, make(chan transport.Event, 1), sync.OnceFunc(func() {
				close(closed)
				sub.Close()
			})}
			go f.count(times, closed)
			return f
		})
	}
}

func (f *forwarded) count(times int, closed <-chan struct{}) {
	for {
		select {
		case e, works := <-f.Subscription.Events():
			if !works {
				close(f.events)
				return
			}
			e.Coalesced *= times
			select {
			case first := <-f.events:
				first.Coalesced += times + e.Coalesced
				e = first
			default:
			}
			f.events <- e
		case <-closed:
			return
		}
	}
}

var subscriptionMutants = []mutant{
	{name: "Subscribe does not wait", in: "subscriptions/a message published right after Subscribe returned is seen", plant: func(b *broken) {
		b.subscribe = func(_ context.Context, channel string) (transport.Subscription, error) {
			f := &forwarded{events: make(chan transport.Event, 1), close: func() {}}
			go func() {
				sub, err := b.Redigo.Subscribe(context.Background(), channel)
				if err != nil {
					return
				}
				for e := range sub.Events() {
					select {
					case f.events <- e:
					default:
					}
				}
			}()
			return f, nil
		}
	}},
	{name: "a listener blocks the others", in: "subscriptions/a listener that does not read delays no other", plant: func(b *broken) {
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
		var open []transport.Subscription // the case subscribes and closes on one goroutine
		b.forwards(func(sub transport.Subscription) *forwarded {
			open = append(open, sub)
			return &forwarded{sub, nil, func() {
				for _, s := range open {
					s.Close()
				}
			}}
		})
	}},
	{name: "dropped events count twice", in: "subscriptions/a listener that does not read delays no other", plant: countsDropped(2)},
	{name: "dropped events are not counted", in: "subscriptions/a listener that does not read delays no other", plant: countsDropped(0), fine: true},
	{name: "contexts are ignored", in: "subscriptions/Subscribe returns when its context ends while the server is frozen", plant: func(b *broken) {
		b.subscribe = func(ctx context.Context, channel string) (transport.Subscription, error) {
			slow, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2900*time.Millisecond)
			defer cancel()
			return b.Redigo.Subscribe(slow, channel)
		}
	}},
	{name: "gaps are swallowed", in: "gaps/every subscription hears of a gap after each cut, and messages after it", plant: noGaps},
	{name: "wake-ups are lost", in: "gaps/no wake-up is lost while connections are cut", plant: noGaps},
}

// zeros answers zeros in place of errors.
func zeros(b *broken) {
	b.listeners = func(ctx context.Context, channels ...string) ([]int64, error) {
		if counts, err := b.Redigo.Listeners(ctx, channels...); err == nil {
			return counts, nil
		}
		return make([]int64, len(channels)), nil
	}
}

var countMutants = []mutant{
	{name: "counts are zeros when no server answers", in: "optional/Listeners: what cannot be found out is an error and not a zero", plant: zeros},
	{name: "counts are zeros when it is forbidden", in: "optional/Listeners: a server that refuses to count is an error, and not a zero", plant: zeros},
	{name: "counts are in the wrong order", in: "optional/Listeners: each channel has its number, in the order asked, and 0 where there is no subscriber", plant: func(b *broken) {
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
	{name: "only the first channels are counted", in: "optional/Listeners: many channels are counted in one go", plant: func(b *broken) {
		b.listeners = func(ctx context.Context, channels ...string) ([]int64, error) {
			counts, err := b.Redigo.Listeners(ctx, channels[:min(len(channels), 100)]...)
			return append(counts, make([]int64, len(channels)-len(counts))...), err
		}
	}},
}

// elsewhere writes on one connection and waits on another, as of a pool.
func elsewhere(b *broken) {
	b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
		b.Redigo.Start(call, func(reply any, err error) {
			if err != nil {
				done(nil, 0, err)
				return
			}
			go func() {
				have, err := b.waitAlone(replicas, timeout)
				done(reply, have, err)
			}()
		})
	}
}

// waitAlone waits on a connection on which nothing was written.
func (b *broken) waitAlone(replicas int, timeout time.Duration) (int64, error) {
	info, err := redis.String(mux.Do(context.Background(), b.Redigo, &transport.Call{Command: "CLIENT", Args: []any{"INFO"}}))
	if err != nil {
		return 0, err
	}
	_, addr, _ := strings.Cut(info, " laddr=")
	addr, _, _ = strings.Cut(addr, " ")
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	return redis.Int64(conn.Do("WAIT", replicas, timeout.Milliseconds()))
}

// errorsOf changes every error of Replicate.
func (b *broken) errorsOf(change func(err error) error) {
	b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
		b.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) { done(reply, have, change(err)) })
	}
}

var replicaMutants = []mutant{
	{name: "WAIT on another connection", in: "replicas/Replicate: a replica counts when it has the write, and not before", plant: elsewhere},
	{name: "WAIT on the connection of all", in: "replicas/Replicate: other calls do not wait for replicas", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
			written := make(chan any, 1)
			b.Redigo.Start(call, func(reply any, _ error) { written <- reply })
			b.Redigo.Start(&transport.Call{Command: "WAIT", Args: []any{replicas, timeout.Milliseconds()}}, func(reply any, err error) {
				have, _ := reply.(int64)
				done(<-written, have, err)
			})
		}
	}},
	{name: "WAIT without an end", in: "replicas/Replicate: its time ends the wait, and the call has run", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
			b.Redigo.Replicate(call, replicas, timeout+time.Minute, done)
		}
	}},
	{name: "one WAIT after the other", in: "replicas/Replicate: many calls share the time of one", plant: func(b *broken) {
		var turn sync.Mutex
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
			go func() {
				turn.Lock()
				defer turn.Unlock()
				over := make(chan struct{})
				b.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
					done(reply, have, err)
					close(over)
				})
				<-over
			}()
		}
	}},
	{name: "errors are no replicas", in: "replicas/Replicate: what the server refuses is an error", plant: func(b *broken) {
		b.errorsOf(func(error) error { return nil })
	}},
	{name: "calls to replicas cannot be withdrawn", in: "replicas/Replicate: a withdrawn call never runs", plant: func(b *broken) {
		b.replicate = func(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
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
}

func noFence(b *broken) { b.fence = func(context.Context, *transport.Call) error { return nil } }

var otherMutants = []mutant{
	{name: "Close does not wait", in: "close/Close ends calls in flight as uncertain", plant: func(b *broken) {
		b.close = func() error {
			time.AfterFunc(100*time.Millisecond, func() { _ = b.Redigo.Close() }) // always nil
			return nil
		}
	}},
	{name: "Fence does nothing", in: "optional/Fence: a call whose connection was cut never runs any more", plant: noFence},
	{name: "Fence takes what it is given", in: "optional/Fence: a call that was never sent, or by another client, cannot be fenced", plant: noFence},
	{name: "Reconnected is closed from the start", in: "optional/Reconnected: the channel is closed at the next reconnect, and not before", plant: func(b *broken) {
		closed := make(chan struct{})
		close(closed)
		b.reconnected = func() <-chan struct{} { return closed }
	}},
	{name: "slots ignore tags", in: "optional/Slot: keys have the slots that Redis gives them", plant: func(b *broken) {
		b.slot = func(key string) int { return transport.HashSlot(strings.ReplaceAll(key, "{", "[")) }
	}},
	{name: "slots are right", in: "optional/Slot: keys have the slots that Redis gives them", plant: func(b *broken) { b.slot = transport.HashSlot }, fine: true},
}
