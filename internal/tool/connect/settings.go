package connect

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/redlatch/redlatch/internal/redisurl"
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

// identity returns user and password, given those of the address.
func (s Settings) identity(user, password string) (string, string, error) {
	user, password = cmp.Or(s.User, user), cmp.Or(s.Password, password)
	if password == "" && s.User != "" {
		// Without a password the user would not be sent either.
		return "", "", errors.New("--user needs a password: in REDIS_PASSWORD, or in a file for --password-file " +
			"(any, for a user with nopass)")
	}
	return user, password, nil
}

// config reads the files.
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
