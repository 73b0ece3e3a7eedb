package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// maxMute is how many connections in a row may end without an answer for any channel before
// waiting callers get an error.
const maxMute = 3

// run connects, again and again while there are channels, until Close.
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
		level := slog.LevelWarn
		if errors.Is(err, errUnwanted) {
			level = slog.LevelDebug // the caller of Reconnect has logged why
		}
		s.cfg.Logger.Log(s.ctx, level, "pub/sub connection lost", "error", err)
		if useful {
			pause.Reset()
		}
		pause.Failed()
		s.connectionLost(pause.Failures(), useful, err)
		s.cfg.OnLost(err)
	}
}

// awaitDemand waits for a channel. It returns false after Close.
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
	return respconn.Timed(s.cfg.Dial(ctx))
}

// dialFailed fails pending listeners. Established ones will get a gap after a reconnect.
func (s *Subscriber) dialFailed(failures int, err error) {
	level := slog.LevelDebug
	if failures == 1 {
		level = slog.LevelWarn // log once while the server is away
	}
	s.cfg.Logger.Log(s.ctx, level, "pub/sub connection not made", "error", err, "failures", failures)
	s.failPending(notSent(serverError(err)))
}

// connectionLost fails pending listeners if waiting is pointless.
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

func serverError(err error) error {
	var e redis.Error
	if errors.As(err, &e) {
		return &transport.ServerError{Text: string(e)}
	}
	return err
}
