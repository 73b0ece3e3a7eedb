package mux

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Dial opens a connection that the Mux alone will use and close, with TLS,
// credentials and database already set. It must not come from a pool and must
// support redis.ConnWithTimeout, as those made by redis.DialContext do. It should
// honour ctx: one that does not is waited for by Close, and by nothing else. Read
// and write timeouts of the connection are not needed.
type Dial func(ctx context.Context) (redis.Conn, error)

// Config says how a [Mux] reaches its server. Only Dial is required.
type Config struct {
	// Dial opens a connection.
	Dial Dial

	// ReplyLimit is how long the oldest call of a connection may wait for its
	// reply, and before that to be written, while no reply comes to any other
	// either, until the connection is given up. It must be longer than a slow
	// script can take. Default 10 s.
	ReplyLimit time.Duration

	// DialTimeout bounds one dial, its first commands included. Default 5 s.
	DialTimeout time.Duration

	// Tag is added to the ids of connections in what calls say that they were sent on
	// (transport.Call.Conn), where there are servers with ids of their own: bits above
	// the 36th, others for each Mux. Default 0.
	Tag int64

	// BackoffMin and BackoffMax bound the pause after a failed dial. It doubles
	// from failure to failure, and of each pause a random part between none and
	// half is left out. Defaults 20 ms and 1 s.
	BackoffMin, BackoffMax time.Duration

	// Logger gets lost and restored connections. Default: silence.
	Logger *slog.Logger

	// OnReconnect, when not nil, runs after each connection made after the
	// first, on the goroutine that late replies are handed to. It must return
	// soon; it may start calls.
	OnReconnect func()

	// Gone, when not nil, is asked while the oldest call waits, or a dial, each sixth of
	// ReplyLimit, whether the server has been replaced: then the connection is given up. It
	// must return at once.
	Gone func() bool

	// OnLost, when not nil, runs when a connection has ended, Close apart, as OnReconnect
	// does: Lost for callers that do not wait.
	OnLost func()

	// OnMoved, when not nil, runs after each connection made in place of one whose
	// server had become a replica, as OnReconnect does: what else is connected to the
	// same address had better connect anew, too.
	OnMoved func()
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		panic("mux: Config.Dial is nil")
	}
	c.ReplyLimit = cmp.Or(c.ReplyLimit, 10*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OnReconnect == nil {
		c.OnReconnect = func() {}
	}
	if c.OnLost == nil {
		c.OnLost = func() {}
	}
	if c.OnMoved == nil {
		c.OnMoved = func() {}
	}
	return c
}
