package cli

import (
	"context"
	"errors"
	"io"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

// WithServer connects and calls do. Its errors are one line with the next step.
func WithServer(ctx context.Context, g *Globals, name string, do func(*connect.Server, *redlatch.Client) error) error {
	if name == "" {
		return &ExitError{Code: CodeUsage, Err: limits.Name(name)}
	}
	srv, err := g.Server()
	if err != nil {
		return err
	}
	client, err := Client(ctx, srv)
	if err != nil {
		return err
	}
	defer func() { _ = engine.EngineOf(client).CloseWithin(0) }()
	err = do(srv, client)
	var said *ExitError
	var other *inspect.NotLock
	switch {
	case err == nil, errors.As(err, &said), errors.As(err, &other):
		return err
	case errors.Is(err, redlatch.ErrWrongType):
		return inspect.WrongType(ctx, srv, name)
	}
	return srv.Problem(err)
}

// Client returns a client to inspect and repair locks of any name. Its errors are those of
// [connect.Server.Open].
func Client(ctx context.Context, srv *connect.Server) (*redlatch.Client, error) {
	client, err := srv.Open(ctx, redlatch.WithServerTime()) // independent of this machine's clock
	if err == nil {
		engine.EngineOf(client).AnyName = true
	}
	return client, err
}

// NeedMaster returns an error with [CodeReplica] if the server is a replica, where commands that
// write would fail later. It also returns the errors of [connect.Server.NeedMaster].
func NeedMaster(ctx context.Context, srv *connect.Server) error {
	err := srv.NeedMaster(ctx)
	var on *connect.OnReplica
	if errors.As(err, &on) {
		return &ExitError{Code: CodeReplica, Err: on}
	}
	return err
}

// OnMaster is [WithServer] for a command that repairs a lock.
func OnMaster(ctx context.Context, g *Globals, name string, do func(repair.Target) error) error {
	return WithServer(ctx, g, name, func(srv *connect.Server, client *redlatch.Client) error {
		if err := NeedMaster(ctx, srv); err != nil {
			return err
		}
		return do(repair.Target{Client: client, Dial: srv.Dial})
	})
}

// WarnOfReplica prints a warning if the server is a replica, and returns its master, "" for none.
// Its errors are those of [connect.Server.Master].
func WarnOfReplica(ctx context.Context, srv *connect.Server, w io.Writer) (master string, err error) {
	if master, err = srv.Master(ctx); err == nil && master != "" {
		Messagef(w, "warning: %s", srv.OfReplica(master))
	}
	return master, err
}
