package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// dones wraps every done that Start is given.
func (b *broken) dones(wrap func(call *transport.Call, done transport.Done) transport.Done) {
	b.start = func(call *transport.Call, done transport.Done) { b.Redigo.Start(call, wrap(call, done)) }
}

// outcomes changes every outcome of Start.
func (b *broken) outcomes(change func(reply any, err error) (any, error)) {
	b.dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) { done(change(reply, err)) }
	})
}

// relabel replaces errors that wrap from by errors that wrap to.
func (b *broken) relabel(from, to error) {
	b.outcomes(func(reply any, err error) (any, error) {
		if errors.Is(err, from) {
			err = fmt.Errorf("%w: was %v", to, err) //nolint:errorlint // the old error must not show
		}
		return reply, err
	})
}

func twice(_ *transport.Call, done transport.Done) transport.Done {
	return func(reply any, err error) {
		done(reply, err)
		done(reply, err)
	}
}

// awaited is started, and closes over after done.
func (b *broken) awaited(call *transport.Call, done transport.Done) (over chan struct{}) {
	over = make(chan struct{})
	b.Redigo.Start(call, func(reply any, err error) {
		done(reply, err)
		close(over)
	})
	return over
}

// copies starts a copy of each call, so that the original's Abandon and Claim have no effect.
func copies(b *broken) {
	b.start = func(call *transport.Call, done transport.Done) { b.Redigo.Start(copied(call), done) }
}

func copied(call *transport.Call) *transport.Call {
	return &transport.Call{Script: call.Script, Command: call.Command, NumKeys: call.NumKeys, Args: call.Args, Urgent: call.Urgent}
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

// swaps gives every hundredth reply to the next call, and the next one's to it.
func swaps(b *broken) {
	var n atomic.Int64
	kept := make(chan transport.Done, 1)
	b.dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			if err == nil && n.Add(1)%100 == 50 && len(kept) == 0 {
				kept <- done
				time.AfterFunc(time.Second, func() {
					select {
					case late := <-kept:
						late(reply, nil)
					default:
					}
				})
				return
			}
			select {
			case other := <-kept:
				other(reply, err)
				done(int64(0), nil)
			default:
				done(reply, err)
			}
		}
	})
}

var callMutants = []mutant{
	{name: "done runs twice", in: "calls/a plain command gets its reply", plant: func(b *broken) { b.dones(twice) }},
	{name: "scripts are not sent again", in: "scripts/a script runs after the server has forgotten it", plant: func(b *broken) {
		b.start = func(call *transport.Call, done transport.Done) {
			if call.Script != nil {
				args := append([]any{call.Script.SHA(), call.NumKeys}, call.Args...)
				call = &transport.Call{Command: "EVALSHA", Args: args}
			}
			b.Redigo.Start(call, done)
		}
	}},
	{name: "errors lose their code", in: "calls/an error of the server comes with its code, and the connection goes on", plant: func(b *broken) {
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
	{name: "urgent calls do not overtake", in: "calls/urgent calls overtake those that wait for a connection", plant: func(b *broken) {
		b.start = func(call *transport.Call, done transport.Done) {
			call.Urgent = false
			b.Redigo.Start(call, done)
		}
	}},
	{name: "Abandon is ignored", in: "abandoned/a withdrawn call ends as not sent and never runs", plant: copies},
	{name: "Claim is not called", in: "calls/a call counts as sent before its reply is there", plant: copies},
	{name: "late replies are lost", in: "abandoned/a call abandoned after it was sent gets its late reply", plant: func(b *broken) {
		b.dones(func(call *transport.Call, done transport.Done) transport.Done {
			return func(reply any, err error) {
				if !call.Abandoned() {
					done(reply, err)
				}
			}
		})
	}},
	{name: "every done on one goroutine", in: "abandoned/a done of an abandoned call that blocks holds up no other reply", plant: func(b *broken) {
		var mu sync.Mutex
		b.dones(func(_ *transport.Call, done transport.Done) transport.Done {
			return func(reply any, err error) {
				mu.Lock()
				defer mu.Unlock()
				done(reply, err)
			}
		})
	}},
	{name: "replies go astray", in: "load/every call ends once, with its own reply", plant: swaps},
	{name: "Start waits", in: "faults/Start does not block while the server is frozen", plant: func(b *broken) {
		b.start = func(call *transport.Call, done transport.Done) { <-b.awaited(call, done) }
	}},
	{name: "uncertain is called not sent", in: "faults/a call that ran and lost its reply is uncertain, and is not repeated", plant: func(b *broken) {
		b.relabel(transport.ErrUncertain, transport.ErrNotSent)
	}},
	{name: "not sent is called uncertain", in: "faults/calls of a server that is down end as not sent", plant: func(b *broken) {
		b.relabel(transport.ErrNotSent, transport.ErrUncertain)
	}},
	{name: "uncertain calls are repeated", in: "faults/a call that ran and lost its reply is uncertain, and is not repeated", plant: repeats},
	{name: "uncertain calls repeated under load", in: "load/every call ends once, with its own reply, while connections are cut", plant: repeats},
	{name: "Close does not say closed", in: "close/Start after Close ends as not sent", plant: func(b *broken) {
		b.relabel(transport.ErrClosed, transport.ErrNotSent)
	}},
}

// leading makes Lead start calls, and wait as wait says.
func (b *broken) leading(wait func(ctx context.Context, over <-chan struct{})) {
	b.lead = func(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
		over := b.awaited(call, done)
		caller.Started()
		wait(ctx, over)
	}
}

var leadMutants = []mutant{
	{name: "wrappers are passed by", in: "lead/Leads: a transport that wraps this one is not passed by", plant: func(b *broken) {
		b.leads = func(transport.Transport) bool { return true }
	}},
	{name: "Lead ignores its context", in: "lead/Lead: an ended context ends it, and the call goes on", plant: func(b *broken) {
		b.leading(func(_ context.Context, over <-chan struct{}) { <-over })
	}},
	{name: "Lead cannot be interrupted", in: "lead/Lead: Interrupt ends it, and the call goes on", plant: func(b *broken) {
		b.leading(func(ctx context.Context, over <-chan struct{}) {
			select {
			case <-over:
			case <-ctx.Done():
			}
		})
	}},
	{name: "Lead does not notify its caller", in: "lead/Lead: the caller is notified of the start, once", plant: func(b *broken) {
		b.lead = func(_ context.Context, call *transport.Call, done transport.Done, _ transport.Caller) {
			b.Redigo.Start(call, done)
		}
	}},
	{name: "Lead runs done twice", in: "lead/Lead: every call ends once, with its own reply", plant: func(b *broken) {
		b.lead = func(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
			b.Redigo.Lead(ctx, call, twice(call, done), caller)
		}
	}},
}
