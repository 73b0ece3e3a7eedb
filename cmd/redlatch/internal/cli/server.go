package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli/config"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

const passwordEnv = "REDIS_PASSWORD"

// Globals contains the flags for the server and the credentials, which all commands share.
type Globals struct {
	Redis string

	context, user, passwordFile string
	tls                         connect.TLS

	flags  *pflag.FlagSet
	chosen *Chosen
}

// register does not take the defaults of flags from the environment, because the help text would then print
// REDIS_URL. There is no flag for a password, because all users of a machine can read command lines.
func (g *Globals) register(root *cobra.Command) {
	f := root.PersistentFlags()
	g.flags = f
	f.StringVar(&g.Redis, redisFlag, "",
		"server: redis://host[:port][/db], rediss:// or unix:///path, redis-cluster://host[:port],... or redis-sentinel://host[:port],.../master "+
			"(default: REDIS_URL, else the current context, else "+defaultRedis+")")
	f.StringVar(&g.context, contextFlag, "", "instead of --redis, use the server of this name in the config file (default: "+contextEnv+"); see redlatch context")
	f.StringVar(&g.user, "user", "", "user; set the password in REDIS_PASSWORD or with --password-file")
	f.StringVar(&g.passwordFile, "password-file", "", "file with the password")
	f.StringVar(&g.tls.CA, "tls-ca", "", "PEM file of the certificate authorities; any tls flag enables TLS, like rediss://")
	f.StringVar(&g.tls.Cert, "tls-cert", "", "PEM file of the client's certificate")
	f.StringVar(&g.tls.Key, "tls-key", "", "PEM file of its key")
	f.StringVar(&g.tls.ServerName, "tls-server-name", "", "expected name in the server's certificate")
	f.BoolVar(&g.tls.Insecure, "tls-insecure-skip-verify", false, "accept any certificate")
	CompleteFiles(root, "password-file", "tls-ca", "tls-cert", "tls-key")
	_ = root.RegisterFlagCompletionFunc(contextFlag, CompleteContexts)
}

// Server returns the server that the flags and the environment specify. Its errors are those of Settings and ServerOf.
func (g *Globals) Server(ctx context.Context) (*connect.Server, error) {
	set, err := g.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return ServerOf(set)
}

// ServerOf returns the server that set describes. Its errors have [CodeUsage].
func ServerOf(set connect.Settings) (*connect.Server, error) {
	srv, err := connect.New(set)
	if err != nil {
		return nil, &ExitError{Code: CodeUsage, Err: err}
	}
	return srv, nil
}

// Settings reads flags, environment, config file and password. It may print a warning and run a command, so call it
// once. Its errors have [CodeUsage], except that of the command.
func (g *Globals) Settings(ctx context.Context) (connect.Settings, error) {
	c, err := g.Choose()
	if err != nil {
		return connect.Settings{}, err
	}
	if g.Redis != "" && c.shows() {
		Messagef(os.Stderr, "warning: all users of this machine can read the password in --redis; "+
			"put it in "+passwordEnv+" or a file given with --password-file, and an address with sentinel_password in "+urlEnv)
	}
	set := connect.Settings{Address: c.Redis, User: c.User, TLS: c.TLS()}
	switch {
	case c.PasswordFile != "":
		where := "--password-file"
		if g.passwordFile == "" {
			where = "password-file"
		}
		text, err := config.Read(c.PasswordFile)
		if err != nil {
			return connect.Settings{}, Usagef("%s: %w", where, err)
		}
		set.Password = strings.TrimRight(string(text), "\r\n")
		if set.Password == "" {
			return connect.Settings{}, Usagef("%s: %s contains no password", where, c.PasswordFile)
		}
	case len(c.PasswordCommand) > 0:
		if set.Password, err = c.PasswordCommand.Password(ctx, c.Dir); err != nil {
			return connect.Settings{}, &ExitError{Code: CodeFailed, Err: err}
		}
	case !connect.HasPassword(set.Address):
		set.Password = c.environmentPassword()
	}
	return set, nil
}

// WithServer connects to the server and calls do. Each error is a single line with the next step.
func WithServer(ctx context.Context, g *Globals, name string, do func(*connect.Server, *redlatch.Client) error) error {
	srv, client, err := Connect(ctx, g, name)
	if err != nil {
		return err
	}
	defer func() { _ = engine.EngineOf(client).CloseWithin(0) }()
	return Explained(ctx, srv, name, do(srv, client))
}

// Connect returns a client that can inspect and repair the named locks.
func Connect(ctx context.Context, g *Globals, names ...string) (*connect.Server, *redlatch.Client, error) {
	if slices.Contains(names, "") {
		return nil, nil, &ExitError{Code: CodeUsage, Err: limits.Name("")}
	}
	srv, err := g.Server(ctx)
	if err != nil {
		return nil, nil, err
	}
	client, err := Client(ctx, srv)
	return srv, client, err
}

// Explained returns an error about a lock as one line with the next step.
func Explained(ctx context.Context, srv *connect.Server, name string, err error) error {
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

// Client returns a client that can inspect and repair all locks.
func Client(ctx context.Context, srv *connect.Server) (*redlatch.Client, error) {
	client, err := srv.Open(ctx, redlatch.WithServerTime()) // do not depend on the clock of this machine
	if err == nil {
		engine.EngineOf(client).AnyName = true
	}
	return client, err
}

// NeedMaster returns an error with [CodeReplica] if the server is a replica.
func NeedMaster(ctx context.Context, srv *connect.Server) error {
	err := srv.NeedMaster(ctx)
	var on *connect.OnReplica
	if errors.As(err, &on) {
		return &ExitError{Code: CodeReplica, Err: on}
	}
	return err
}

// OnMaster is [WithServer] for commands that repair a lock. If the user lacks rights, the error
// lists them.
func OnMaster(ctx context.Context, g *Globals, name string, do func(repair.Target) error) error {
	return WithServer(ctx, g, name, func(srv *connect.Server, client *redlatch.Client) error {
		if err := NeedMaster(ctx, srv); err != nil {
			return err
		}
		err := do(repair.Target{Client: client, Dial: srv.Dial})
		if said := (*ExitError)(nil); !connect.Denied(err) || errors.As(err, &said) {
			return err
		}
		rejected := fmt.Sprintf("Redis at %s rejected the request", srv)
		if errors.Is(err, redlatch.ErrNotNotified) {
			rejected = fmt.Sprintf("the lock was released, but its waiters were not notified: Redis at %s rejected the message", srv)
		}
		return Errorf(CodeFailed, "%s: %s", rejected, diagnosis.Denied(ctx, srv, name, err, acl.Operator))
	})
}

// WarnOfReplica warns if the server is a replica. It returns the address of its master, or "".
func WarnOfReplica(ctx context.Context, srv *connect.Server, w io.Writer) (master string, err error) {
	if master, err = srv.Master(ctx); err == nil && master != "" {
		Messagef(w, "warning: %s", srv.OfReplica(master))
	}
	return master, err
}

const closing = 2 * time.Second

// Listen listens on a TCP address.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %s", address, connect.Reason(err))
	}
	return l, nil
}

// Serve serves requests until ctx ends. It then calls stop, which must end all streams.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, stop func()) error {
	web := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // streams extend their deadline
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if err := web.Shutdown(bounded); err != nil {
		_ = web.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
