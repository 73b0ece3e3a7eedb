package redisconn_test

import (
	"context"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// leads breaks Lead.
type leads struct {
	*redisconn.Redigo
	lead func(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller)
}

func (l *leads) Leads(outermost transport.Transport) bool { return outermost == transport.Transport(l) }

func (l *leads) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
	l.lead(ctx, call, done, caller)
}

// leadsAnybody leads calls of transports that wrap it, too.
type leadsAnybody struct{ *redisconn.Redigo }

func (leadsAnybody) Leads(transport.Transport) bool { return true }

func passesWrappersBy(r *redisconn.Redigo) transport.Transport { return leadsAnybody{r} }

// neverReturns waits for the reply whatever happens.
func neverReturns(r *redisconn.Redigo) transport.Transport {
	return &leads{r, func(_ context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
		over := make(chan struct{})
		r.Start(call, func(reply any, err error) {
			done(reply, err)
			close(over)
		})
		caller.Started()
		<-over
	}}
}

// uninterrupted heeds the context alone.
func uninterrupted(r *redisconn.Redigo) transport.Transport {
	return &leads{r, func(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
		over := make(chan struct{})
		r.Start(call, func(reply any, err error) {
			done(reply, err)
			close(over)
		})
		caller.Started()
		select {
		case <-over:
		case <-ctx.Done():
		}
	}}
}

// leadWithoutStart does not say that calls were started.
func leadWithoutStart(r *redisconn.Redigo) transport.Transport {
	return &leads{r, func(_ context.Context, call *transport.Call, done transport.Done, _ transport.Caller) {
		r.Start(call, done)
	}}
}

// leadsTwice runs each done of a led call twice.
func leadsTwice(r *redisconn.Redigo) transport.Transport {
	return &leads{r, func(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
		r.Lead(ctx, call, func(reply any, err error) {
			done(reply, err)
			done(reply, err)
		}, caller)
	}}
}
