package redisconn_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// subscribes breaks Subscribe.
type subscribes struct {
	*redisconn.Redigo
	subscribe func(ctx context.Context, channel string) (transport.Subscription, error)
}

func (s subscribes) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return s.subscribe(ctx, channel)
}

// forwarded is a subscription with events of its own.
type forwarded struct {
	transport.Subscription
	events chan transport.Event
	close  func()
}

func (f *forwarded) Events() <-chan transport.Event { return f.events }
func (f *forwarded) Close()                         { f.close() }

// hasty returns before the subscription is there.
func hasty(r *redisconn.Redigo) transport.Transport {
	return subscribes{r, func(_ context.Context, channel string) (transport.Subscription, error) {
		f := &forwarded{events: make(chan transport.Event, 1), close: func() {}}
		go func() {
			sub, err := r.Subscribe(context.Background(), channel)
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
	}}
}

// blocking delivers to one listener after the other, and waits for each.
func blocking(r *redisconn.Redigo) transport.Transport {
	var mu sync.Mutex
	return subscribes{r, func(ctx context.Context, channel string) (transport.Subscription, error) {
		sub, err := r.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		f := &forwarded{Subscription: sub, events: make(chan transport.Event), close: sub.Close}
		go func() {
			for e := range sub.Events() {
				mu.Lock()
				f.events <- e
				mu.Unlock()
			}
		}()
		return f, nil
	}}
}

// countsDropped counts each event that it drops so many times.
func countsDropped(times int) func(*redisconn.Redigo) transport.Transport {
	return func(r *redisconn.Redigo) transport.Transport {
		return subscribes{r, func(ctx context.Context, channel string) (transport.Subscription, error) {
			sub, err := r.Subscribe(ctx, channel)
			if err != nil {
				return nil, err
			}
			closed := make(chan struct{})
			end := sync.OnceFunc(func() {
				close(closed)
				sub.Close()
			})
			f := &forwarded{Subscription: sub, events: make(chan transport.Event, 1), close: end}
			go f.count(times, closed)
			return f, nil
		}}
	}
}

// count passes events on until the subscription is closed.
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

func noGaps(r *redisconn.Redigo) transport.Transport {
	return subscribes{r, func(ctx context.Context, channel string) (transport.Subscription, error) {
		sub, err := r.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		f := &forwarded{Subscription: sub, events: make(chan transport.Event, 1), close: sub.Close}
		go func() {
			defer close(f.events)
			for e := range sub.Events() {
				if !e.Gap {
					f.events <- e
				}
			}
		}()
		return f, nil
	}}
}

func neverUnsubscribes(r *redisconn.Redigo) transport.Transport {
	return subscribes{r, func(ctx context.Context, channel string) (transport.Subscription, error) {
		sub, err := r.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		return closer{sub, func() {}}, nil
	}}
}

func closesAll(r *redisconn.Redigo) transport.Transport {
	var mu sync.Mutex
	var open []transport.Subscription
	return subscribes{r, func(ctx context.Context, channel string) (transport.Subscription, error) {
		sub, err := r.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		open = append(open, sub)
		return closer{sub, func() {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range open {
				s.Close()
			}
		}}, nil
	}}
}

type closer struct {
	transport.Subscription
	close func()
}

func (c closer) Close() { c.close() }

func noContext(r *redisconn.Redigo) transport.Transport {
	return subscribes{r, func(ctx context.Context, channel string) (transport.Subscription, error) {
		slow, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2900*time.Millisecond)
		defer cancel()
		return r.Subscribe(slow, channel)
	}}
}

// others breaks the rest.
type others struct {
	*redisconn.Redigo
	fence       func(context.Context, *transport.Call) error
	reconnected func() <-chan struct{}
	close       func() error
}

func (o others) Fence(ctx context.Context, call *transport.Call) error { return o.fence(ctx, call) }
func (o others) Reconnected() <-chan struct{}                          { return o.reconnected() }
func (o others) Close() error                                          { return o.close() }

func sound(r *redisconn.Redigo) others { return others{r, r.Fence, r.Reconnected, r.Close} }

func closesLater(r *redisconn.Redigo) transport.Transport {
	o := sound(r)
	o.close = func() error {
		time.AfterFunc(100*time.Millisecond, func() { _ = r.Close() }) // always nil
		return nil
	}
	return o
}

func noFence(r *redisconn.Redigo) transport.Transport {
	o := sound(r)
	o.fence = func(context.Context, *transport.Call) error { return nil }
	return o
}

func alwaysReconnected(r *redisconn.Redigo) transport.Transport {
	o := sound(r)
	closed := make(chan struct{})
	close(closed)
	o.reconnected = func() <-chan struct{} { return closed }
	return o
}

// slotter claims to be a cluster's.
type slotter struct {
	*redisconn.Redigo
	slot func(key string) int
}

func (s slotter) Slot(key string) int { return s.slot(key) }

func slotted(slot func(string) int) func(*redisconn.Redigo) transport.Transport {
	return func(r *redisconn.Redigo) transport.Transport { return slotter{r, slot} }
}

func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return slotOfAll(tag)
		}
	}
	return slotOfAll(key)
}

// slotOfAll is CRC16 (XMODEM) modulo the number of slots.
func slotOfAll(key string) int {
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % 16384)
}
