package redisconn_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// starts breaks Start.
type starts struct {
	*redisconn.Redigo
	start func(r *redisconn.Redigo, call *transport.Call, done transport.Done)
}

func (s starts) Start(call *transport.Call, done transport.Done) { s.start(s.Redigo, call, done) }

// dones breaks what done is given, or when it runs.
func dones(wrap func(call *transport.Call, done transport.Done) transport.Done) func(*redisconn.Redigo) transport.Transport {
	return func(r *redisconn.Redigo) transport.Transport {
		return starts{r, func(r *redisconn.Redigo, call *transport.Call, done transport.Done) {
			r.Start(call, wrap(call, done))
		}}
	}
}

func doneTwice(r *redisconn.Redigo) transport.Transport {
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			done(reply, err)
			done(reply, err)
		}
	})(r)
}

func textErrors(r *redisconn.Redigo) transport.Transport {
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			var se *transport.ServerError
			if errors.As(err, &se) {
				err = errors.New(se.Text)
			}
			done(reply, err)
		}
	})(r)
}

func nestedText(r *redisconn.Redigo) transport.Transport {
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			if all, ok := reply.([]any); ok {
				for i := range all {
					if se, ok := all[i].(*transport.ServerError); ok {
						all[i] = se.Text
					}
				}
			}
			done(reply, err)
		}
	})(r)
}

func losesLate(r *redisconn.Redigo) transport.Transport {
	return dones(func(call *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			if !call.Abandoned() {
				done(reply, err)
			}
		}
	})(r)
}

func oneDoneAtATime(r *redisconn.Redigo) transport.Transport {
	var mu sync.Mutex
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			mu.Lock()
			defer mu.Unlock()
			done(reply, err)
		}
	})(r)
}

// swaps gives every hundredth reply to the next call, and the next one's to it.
func swaps(r *redisconn.Redigo) transport.Transport {
	var n atomic.Int64
	kept := make(chan func(any, error), 1)
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			switch {
			case err != nil:
				done(reply, err)
			case n.Add(1)%100 == 50:
				select {
				case kept <- func(other any, err error) { done(other, err) }:
					time.AfterFunc(time.Second, func() {
						select {
						case late := <-kept:
							late(reply, nil)
						default:
						}
					})
				default:
					done(reply, err)
				}
			default:
				select {
				case other := <-kept:
					other(reply, nil)
					done(int64(0), nil)
				default:
					done(reply, err)
				}
			}
		}
	})(r)
}

func optimist(r *redisconn.Redigo) transport.Transport {
	return relabel(transport.ErrUncertain, transport.ErrNotSent)(r)
}

func pessimist(r *redisconn.Redigo) transport.Transport {
	return relabel(transport.ErrNotSent, transport.ErrUncertain)(r)
}

func notClosed(r *redisconn.Redigo) transport.Transport {
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			if errors.Is(err, transport.ErrClosed) {
				err = transport.ErrNotSent
			}
			done(reply, err)
		}
	})(r)
}

func relabel(from, to error) func(*redisconn.Redigo) transport.Transport {
	return dones(func(_ *transport.Call, done transport.Done) transport.Done {
		return func(reply any, err error) {
			if errors.Is(err, from) {
				err = fmt.Errorf("%w: was %v", to, err) //nolint:errorlint // the old error must not show
			}
			done(reply, err)
		}
	})
}

func shaOnly(r *redisconn.Redigo) transport.Transport {
	return starts{r, func(r *redisconn.Redigo, call *transport.Call, done transport.Done) {
		if call.Script != nil {
			args := append([]any{call.Script.SHA(), call.NumKeys}, call.Args...)
			call = &transport.Call{Command: "EVALSHA", Args: args}
		}
		r.Start(call, done)
	}}
}

// copies starts a copy of each call, so that the original's Abandon and Claim
// have no effect.
func copies(r *redisconn.Redigo) transport.Transport {
	return starts{r, func(r *redisconn.Redigo, call *transport.Call, done transport.Done) {
		r.Start(&transport.Call{
			Script: call.Script, Command: call.Command, NumKeys: call.NumKeys, Args: call.Args, Urgent: call.Urgent,
		}, done)
	}}
}

func neverUrgent(r *redisconn.Redigo) transport.Transport {
	return starts{r, func(r *redisconn.Redigo, call *transport.Call, done transport.Done) {
		call.Urgent = false
		r.Start(call, done)
	}}
}

func waits(r *redisconn.Redigo) transport.Transport {
	return starts{r, func(r *redisconn.Redigo, call *transport.Call, done transport.Done) {
		over := make(chan struct{})
		r.Start(call, func(reply any, err error) {
			done(reply, err)
			close(over)
		})
		<-over
	}}
}

func repeats(r *redisconn.Redigo) transport.Transport {
	return starts{r, func(r *redisconn.Redigo, call *transport.Call, done transport.Done) {
		r.Start(call, func(reply any, err error) {
			if errors.Is(err, transport.ErrUncertain) && !errors.Is(err, transport.ErrClosed) {
				r.Start(call, done)
				return
			}
			done(reply, err)
		})
	}}
}
