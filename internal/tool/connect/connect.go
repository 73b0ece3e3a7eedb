// Package connect connects the command line to a server and explains failures. New finds mistakes
// in addresses and files before anything is sent. Errors, Settings and Servers never print a user
// or a password.
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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Settings describe how to reach a server. Empty fields are taken from the address.
type Settings struct {
	// Address is a URL that redlatch.Open accepts.
	Address string `json:"address"`
	// User and Password override the address.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	TLS      TLS    `json:"tls"`
}

// TLS configures encryption. Setting any field turns it on.
type TLS struct {
	// CA is a PEM file with certificate authorities that replace the system's.
	CA string `json:"ca,omitempty"`
	// Cert and Key are PEM files for the client's certificate.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// ServerName is the name in the server's certificate. "" means the host in the address.
	ServerName string `json:"server_name,omitempty"`
	Insecure   bool   `json:"insecure,omitempty"`
}

// String returns the address without user and password.
func (s Settings) String() string { return redisurl.Show(s.Address) }

// GoString is String, so that no format verb prints a password.
func (s Settings) GoString() string { return s.String() }

// Server is a server, cluster or Sentinel deployment to connect to. It is safe for concurrent use.
type Server struct {
	at  *redisurl.Address
	tls *tls.Config // nil means no TLS, or the default for rediss
	of  *Server     // the deployment of this master; nil if the user named this server
}

// New does not send anything. Its errors do not quote the address, which may contain a password.
func New(set Settings) (*Server, error) {
	at, err := redisurl.Parse(set.Address)
	if errors.Is(err, redisurl.ErrEscape) {
		return nil, fmt.Errorf("--redis or REDIS_URL: %w, or put the password into REDIS_PASSWORD or a file for --password-file", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--redis or REDIS_URL: %w", err)
	}
	at.User, at.Password = cmp.Or(set.User, at.User), cmp.Or(set.Password, at.Password)
	// Clients do not send a user without a password.
	if at.Password == "" && set.User != "" {
		return nil, errors.New("--user needs a password: in REDIS_PASSWORD, or in a file for --password-file " +
			"(any, for a user with nopass)")
	}
	if _, _, err := at.Credentials(); err != nil {
		return nil, errors.New("the user in --redis or REDIS_URL needs a password: in the address, in REDIS_PASSWORD, or in a file for " +
			"--password-file (any, for a user with nopass)")
	}
	s := &Server{at: at}
	if set.TLS != (TLS{}) {
		if at.Kind == redisurl.Socket {
			return nil, errors.New("a unix socket does not use TLS: remove the --tls flags")
		}
		at.Secure = true
		if s.tls, err = set.TLS.config(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // the user sets an explicit flag
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s does not contain a PEM certificate", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("--tls-cert and --tls-key must be set together")
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

// timeout bounds each dial, write and read.
const timeout = 5 * time.Second

// HasPassword reports whether an address has a password for the server.
func HasPassword(rawURL string) bool {
	a, err := redisurl.Parse(rawURL)
	return err == nil && a.Password != ""
}

// Shows reports whether an address has any password, including that of Sentinels. If there is another password, a lone
// user is not one.
func Shows(rawURL string, other bool) bool {
	a, err := redisurl.Parse(rawURL)
	if err != nil {
		return false
	}
	password := a.Password
	if !other {
		_, password, _ = a.Credentials()
	}
	return password+a.SentinelPassword != ""
}

// String returns the address without user, password and options.
func (s *Server) String() string { return s.at.String() }

// GoString is String, so that no format verb prints a password.
func (s *Server) GoString() string { return s.String() }

// Host returns the server's host, or "" for a unix socket or a deployment.
func (s *Server) Host() string {
	if s.at.Kind != redisurl.Single {
		return ""
	}
	host, _, _ := net.SplitHostPort(s.at.Hosts[0]) // the parser joined it
	return host
}

// User returns the user for connections, or "default" if none is set.
func (s *Server) User() string {
	user, _, _ := s.at.Credentials() // checked by New
	return cmp.Or(user, "default")
}

// Open is redlatch.Open with errors from Problem.
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

// OpenedBy returns the server whose Open returned the client, or nil for other clients.
func OpenedBy(client *redlatch.Client) *Server {
	s, _ := engine.EngineOf(client).Opener.(*Server)
	return s
}

// New returns a client that connects on first use. For a deployment, it is Open.
func (s *Server) New(ctx context.Context, opts ...redlatch.Option) (*redlatch.Client, error) {
	if s.IsDeployment() {
		return s.Open(ctx, opts...)
	}
	replica := func(ctx context.Context, addr string) (redis.Conn, error) { return s.node(addr).dial(ctx) }
	return redlatch.New(s.dial, append(opts, redlatch.WithReplicaDialer(replica))...)
}

// Dial connects to the server, to the Sentinels' current master, or to all masters of a cluster. In a cluster, each
// command is sent to the node that serves it, and the connection cannot subscribe. ctx limits only the time to
// connect.
func (s *Server) Dial(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
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

// Dialer opens a connection.
type Dialer func(context.Context) (redis.Conn, error)

// Use calls do with a connection, and closes it afterwards or when ctx ends. It returns the error
// of dial or do, or the cause of ctx.
func Use(ctx context.Context, dial Dialer, do func(redis.Conn) error) error {
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close()
	}()
	if err = do(c); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Master returns the host:port of the master that the server replicates. It returns "" for a server
// that is not a replica or whose role is unknown, and for a deployment.
func (s *Server) Master(ctx context.Context) (master string, err error) {
	if s.IsDeployment() {
		return "", nil
	}
	err = Use(ctx, s.Dial, func(c redis.Conn) (err error) {
		master, err = s.masterFrom(c)
		return err
	})
	return master, err
}

func (s *Server) masterFrom(c redis.Conn) (string, error) {
	reply, err := c.Do("ROLE")
	if err != nil && c.Err() != nil { // c may also have been closed after the reply
		return "", s.Problem(err)
	}
	return masterOf(reply, err), nil
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

// CheckWhole returns an error if the server called name has only a part of the locks, because it is a node of a cluster
// with other masters, or if the user may not ask for them. HELLO needs no right.
func CheckWhole(c redis.Conn, name string) error {
	fields, _ := redis.Values(c.Do("HELLO"))
	for pair := range slices.Chunk(fields, 2) {
		if words, _ := redis.Strings(pair, nil); !slices.Equal(words, []string{"mode", "cluster"}) {
			continue
		}
		slots, err := c.Do("CLUSTER", "SLOTS")
		if err == nil {
			var masters []string
			if masters, err = cluster.Masters(slots, name); err == nil && len(masters) == 1 {
				continue
			}
		}
		if c.Err() == nil { // otherwise the next command fails
			return &problem{name + " is one node of a cluster and has only part of its locks: use redis-cluster:// in --redis or REDIS_URL", nil}
		}
	}
	return nil
}

// OfReplica warns that the server is a replica of master.
func (s *Server) OfReplica(master string) string {
	return fmt.Sprintf("%s is a replica of %s: its data may be stale, and it cannot take locks", s, master)
}

// OnReplica is the error for a writing command on a replica.
type OnReplica struct {
	Server, Master *Server
}

// Error implements error.
func (e *OnReplica) Error() string {
	text := fmt.Sprintf("%s is a replica of %s and rejects writes: use its master", e.Server, e.Master.Place())
	// The server names its master. Without quotes inside, messages do not shorten the argument.
	if to := e.Master.String(); !strings.Contains(to, "'") {
		text += ", with --redis " + sanitize.Arg(to)
	}
	return text
}

// NeedMaster returns an *OnReplica for a replica, and otherwise the error of Master.
func (s *Server) NeedMaster(ctx context.Context) error {
	master, err := s.Master(ctx)
	if err != nil || master == "" {
		return err
	}
	return &OnReplica{Server: s, Master: s.node(master)}
}
