package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

// maxMute is how many connections in a row may end without an answer for any
// channel before the callers that wait for one get an error.
const maxMute = 3

// run is the Subscriber's goroutine: it makes one connection after the other
// for as long as channels are wanted, and ends with Close.
func (s *Subscriber) run() {
	defer close(s.done)
	pause := clock.Backoff{Min: s.cfg.BackoffMin, Max: s.cfg.BackoffMax}
	lost := false
	for s.awaitDemand() && pause.Wait(s.ctx) {
		conn, err := s.dial()
		if err != nil && s.ctx.Err() != nil {
			return // Close ended it
		}
		if err != nil {
			pause.Failed()
			s.dialFailed(pause.Failures(), err)
			s.cfg.OnLost(err)
			continue
		}
		if lost {
			s.cfg.OnReconnect()
		}
		useful, err := s.serve(conn)
		if s.ctx.Err() != nil {
			return
		}
		lost = true
		s.cfg.Logger.Log(s.ctx, lostLevel(err), "pub/sub connection lost", "error", err)
		if useful {
			pause.Reset()
		}
		pause.Failed()
		s.connectionLost(pause.Failures(), useful, err)
		s.cfg.OnLost(err)
	}
}

// lostLevel is how loud to tell of a connection that ended because of err.
func lostLevel(err error) slog.Level {
	if errors.Is(err, errUnwanted) {
		return slog.LevelDebug // the caller that asked for it has said why
	}
	return slog.LevelWarn
}

// awaitDemand returns true when a channel is wanted, false after Close.
func (s *Subscriber) awaitDemand() bool {
	for !s.demand() {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return false
		}
	}
	return s.ctx.Err() == nil
}

func (s *Subscriber) demand() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table.channels) > 0
}

func (s *Subscriber) dial() (redis.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.DialTimeout)
	defer cancel()
	conn, err := s.cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := conn.(redis.ConnWithTimeout); !ok {
		if conn != nil {
			_ = conn.Close() // it is of no use, and its error of no interest
		}
		return nil, fmt.Errorf("pubsub: Dial returned a %T, which is no redis.ConnWithTimeout", conn)
	}
	return conn, nil
}

// dialFailed tells the callers that wait for their first acknowledgement. The
// established listeners are in no hurry: they get a gap when the server is back.
func (s *Subscriber) dialFailed(failures int, err error) {
	level := slog.LevelDebug
	if failures == 1 {
		level = slog.LevelWarn // once is enough while the server is away
	}
	s.cfg.Logger.Log(s.ctx, level, "pub/sub connection not made", "error", err, "failures", failures)
	s.failPending(notSent(serverError(err)))
}

// connectionLost tells the waiting callers, if there is no use in waiting.
func (s *Subscriber) connectionLost(failures int, useful bool, err error) {
	var se *transport.ServerError
	switch {
	case errors.As(err, &se) && !se.IsFull():
		s.failPending(se)
	case se != nil:
		s.failPending(notSent(se))
	case !useful && failures >= maxMute:
		s.failPending(notSent(err))
	}
}

func (s *Subscriber) failPending(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.failPending(err)
}

func notSent(err error) error {
	return fmt.Errorf("%w: subscribe: %w", transport.ErrNotSent, err)
}

// serverError turns redigo's type of error into the transport's.
func serverError(err error) error {
	var e redis.Error
	if errors.As(err, &e) {
		return &transport.ServerError{Text: string(e)}
	}
	return err
}
