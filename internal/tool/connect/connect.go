// Package connect is how the command line reaches a server, and says why it cannot.
//
//	flags, environment ─▶ Settings ─New─▶ Server ─Open─▶ *redlatch.Client
//	                                        ├────Dial─▶ redis.Conn
//	                                        └─Problem─▶ one line: what is wrong, what to do
//
// [New] finds what is wrong with an address, or with a file that a flag names,
// before anything is sent. [Server.Problem] turns what goes wrong later into one line
// that says what to do. No line ever has a user or a password in it, and neither
// Settings nor Server shows them when it is printed.
package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
)

// errNoPassword says that the user in an address would not be sent.
var errNoPassword = errors.New("the user in --redis or REDIS_URL needs a password: in the address, in REDIS_PASSWORD, or in a file for " +
	"--password-file (any, for a user with nopass)")

// Settings is how to reach a server, by flags and environment. What is left empty is taken
// from the address.
type Settings struct {
	// Address is the server's URL, or that of a cluster or of Sentinels, see
	// redlatch.Open.
	Address string `json:"address"`
	// User and Password override those of the address.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	// TLS is how the connection is encrypted.
	TLS TLS `json:"tls"`
}

// TLS is how a connection is encrypted. Any field that is set turns encryption on,
// whatever the address says.
type TLS struct {
	// On turns encryption on.
	On bool `json:"on,omitempty"`
	// CA is a PEM file with the authorities that may sign the server's certificate,
	// in place of the system's.
	CA string `json:"ca,omitempty"`
	// Cert and Key are PEM files with the client's certificate and its key.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// ServerName is the name that the server's certificate must have, in place of
	// the address's host.
	ServerName string `json:"server_name,omitempty"`
	// Insecure accepts any certificate.
	Insecure bool `json:"insecure,omitempty"`
}

// String returns the address without user and password.
func (s Settings) String() string { return redisurl.Show(s.Address) }

// GoString returns what String does, so that no format shows a password.
func (s Settings) GoString() string { return s.String() }

// Server is a server that can be connected to. It is safe for concurrent use.
type Server struct {
	at  *redisurl.Address
	tls *tls.Config // nil: none, or the usual one of rediss://
	of  *Server     // the deployment that named it as a master; nil: the user named it
}

// New returns the server that set describes. It reads the files that set names, and
// sends nothing. Its errors name no part of the address: one that was mistyped may
// hold a password where no parser would look for it.
func New(set Settings) (*Server, error) {
	at, err := redisurl.Parse(set.Address)
	if errors.Is(err, redisurl.ErrEscape) {
		return nil, fmt.Errorf("--redis or REDIS_URL: %w, or put the password into REDIS_PASSWORD or a file for --password-file", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--redis or REDIS_URL: %w", err)
	}
	if at.User, at.Password, err = set.identity(at.User, at.Password); err != nil {
		return nil, err
	}
	if _, _, err := at.Credentials(); err != nil {
		return nil, errNoPassword // another user than the one that is named would be asked
	}
	s := &Server{at: at}
	if set.TLS != (TLS{}) {
		if at.Kind == redisurl.Socket {
			return nil, errors.New("there is no TLS on a unix socket: leave the --tls flags out")
		}
		at.Secure = true
		if s.tls, err = set.TLS.config(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s Settings) identity(user, password string) (string, string, error) {
	user, password = cmp.Or(s.User, user), cmp.Or(s.Password, password)
	if password == "" && s.User != "" {
		// Without a password the user would not be sent either.
		return "", "", errors.New("--user needs a password: in REDIS_PASSWORD, or in a file for --password-file " +
			"(any, for a user with nopass)")
	}
	return user, password, nil
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // only where the user asks for it, by a flag that says so
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s has no certificate in PEM form", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("--tls-cert and --tls-key go together")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// timeout bounds each step of a short connection: dial, write, read.
const timeout = 5 * time.Second

// HasPassword reports whether an address has a password for the server in it.
func HasPassword(rawURL string) bool {
	a, err := redisurl.Parse(rawURL)
	return err == nil && a.Password != ""
}

// Shows reports whether an address has any password in it, that of Sentinels included.
func Shows(rawURL string) bool {
	a, err := redisurl.Parse(rawURL)
	return err == nil && a.Password+a.SentinelPassword != ""
}

// String returns the address without user, password and options.
func (s *Server) String() string { return s.at.String() }

// GoString returns what String does, so that no format shows a password.
func (s *Server) GoString() string { return s.String() }

// Host returns the name or address of the server's machine, "" for a unix socket and a
// deployment, whose masters have one.
func (s *Server) Host() string {
	if s.at.Kind != redisurl.Single {
		return ""
	}
	host, _, _ := net.SplitHostPort(s.at.Hosts[0]) // it was put together by the parser
	return host
}

// User returns the user of the connection, "default" when the address has none.
func (s *Server) User() string {
	user, _, _ := s.at.Credentials() // New has checked them
	return cmp.Or(user, "default")
}

// Open connects as redlatch.Open does. OpenedBy knows the client. Its errors are those of Problem.
func (s *Server) Open(ctx context.Context, opts ...redlatch.Option) (*redlatch.Client, error) {
	if s.tls != nil {
		opts = append(opts, redlatch.WithTLSConfig(s.tls))
	}
	client, err := redlatch.Open(ctx, s.at.Full(), opts...)
	if err != nil {
		return nil, s.Problem(err)
	}
	engine.EngineOf(client).Opener = s
	return client, nil
}

// OpenedBy returns the server whose Open has made the client, nil for other clients.
func OpenedBy(client *redlatch.Client) *Server {
	s, _ := engine.EngineOf(client).Opener.(*Server)
	return s
}

// New returns a client that connects when it is first used, see redlatch.New; that of a
// deployment connects at once, as Open does.
func (s *Server) New(ctx context.Context, opts ...redlatch.Option) (*redlatch.Client, error) {
	if s.IsDeployment() {
		return s.Open(ctx, opts...)
	}
	replica := func(ctx context.Context, addr string) (redis.Conn, error) { return s.node(addr).dial(ctx) }
	return redlatch.New(s.dial, append(opts, redlatch.WithReplicaDialer(replica))...)
}

// Dial makes one connection: to the server, to the master that Sentinels name now, or
// one to a cluster on which commands find their nodes, and that cannot listen. ctx bounds
// the connecting alone; replies are waited for 5 s. Its errors are those of Problem, but for those
// of ctx.
func (s *Server) Dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err) // no one waits for an explanation
	case err != nil:
		return nil, s.Problem(err)
	}
	return c, nil
}

func (s *Server) dial(ctx context.Context) (redis.Conn, error) {
	if s.IsDeployment() {
		return s.dialDeployment(ctx)
	}
	d := respconn.Dialer{Timeout: timeout, Write: timeout}
	if s.at.Secure {
		d.TLS = s.tlsConfig()
	}
	return d.Dial(ctx, s.at.Server())
}

func (s *Server) tlsConfig() *tls.Config {
	if s.tls != nil {
		return s.tls
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// Dialer makes a connection, as [Server.Dial] does.
type Dialer func(context.Context) (redis.Conn, error)

// Use calls do with a connection that it closes after that. It ends with ctx: commands on a connection
// know nothing of it, so the connection is closed. The error is dial's, the cause of ctx, or do's.
func Use(ctx context.Context, dial Dialer, do func(redis.Conn) error) error {
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // only read from
	}()
	if err = do(c); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Master returns host:port of the master that the server is a replica of, "" when it is none,
// when that may not be asked, and for clusters and Sentinels, which name masters. It sends
// ROLE on a connection of its own. Its errors are those of Dial.
func (s *Server) Master(ctx context.Context) (master string, err error) {
	if s.IsDeployment() {
		return "", nil
	}
	err = Use(ctx, s.Dial, func(c redis.Conn) error {
		reply, refused := c.Do("ROLE")
		if c.Err() != nil {
			return s.Problem(refused)
		}
		master = masterOf(reply, refused)
		return nil
	})
	return master, err
}

func masterOf(reply any, err error) string {
	role, err := redis.Values(reply, err)
	if err != nil || len(role) < 3 {
		return ""
	}
	kind, _ := redis.String(role[0], nil)
	host, hostErr := redis.String(role[1], nil)
	port, portErr := redis.Int(role[2], nil)
	if kind != "slave" || hostErr != nil || portErr != nil {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// OfReplica says what it means that a server is a replica of the one at master.
func (s *Server) OfReplica(master string) string {
	return fmt.Sprintf("%s is a replica of %s: it may show what was true a moment ago, and no lock can be taken here", s, master)
}

// OnReplica is the error of a command that writes, on a server that is a replica.
type OnReplica struct {
	// Server is the replica, Master the server that it follows, as it is reached itself.
	Server, Master *Server
}

// Error names both.
func (e *OnReplica) Error() string {
	return fmt.Sprintf("%s is a replica of %s, and nothing can be written to it: name the master, with --redis %s",
		e.Server, e.Master.Place(), e.Master)
}

// NeedMaster returns an *OnReplica for a server that is a replica, nil for a master, and where
// Master does not know. Other errors are those of Master.
func (s *Server) NeedMaster(ctx context.Context) error {
	master, err := s.Master(ctx)
	if err != nil || master == "" {
		return err
	}
	return &OnReplica{Server: s, Master: s.node(master)}
}
