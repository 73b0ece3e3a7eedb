// Package redisurl parses the addresses of servers, Unix sockets, clusters and Sentinels. Errors do not repeat any part
// of the address, because any part may belong to a password.
package redisurl

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

const (
	hidden  = "the given address" // shown for an invalid address
	most    = 200                 // bytes of an address that are shown
	longest = 4096                // bytes of an address
)

// Kind is the kind of deployment at an address.
type Kind int

// The kinds of addresses.
const (
	Single Kind = iota
	Socket
	Cluster
	Sentinels
)

// Address is a parsed address.
type Address struct {
	Kind   Kind
	Valkey bool // the scheme has valkey in place of redis
	Secure bool // use TLS, also to Sentinels
	// UserOnly means that the user is not followed by a colon.
	User, Password string
	UserOnly       bool
	Hosts          []string // host:port of the server, of nodes or of Sentinels
	Path           string   // of a Unix socket
	Master         string   // the Sentinels' name for the master
	DB             int

	SentinelUser, SentinelPassword string
	Sharding                       string // auto, on, off or ""
}

// ErrNoPassword is returned by [Address.Credentials].
var ErrNoPassword = errors.New("its user needs a password (any, for a user with nopass)")

// Several reports whether a is the address of a cluster or of Sentinels.
func (a *Address) Several() bool { return a.Kind == Cluster || a.Kind == Sentinels }

// Credentials returns the user and the password to log in with. In the address of a single server, text before the @
// that does not contain a colon is a password. Otherwise, a user name must come with a password, because the server
// would log in the default user without one.
func (a *Address) Credentials() (user, password string, err error) {
	switch {
	case a.User == "" || a.Password != "":
		return a.User, a.Password, nil
	case a.UserOnly && a.Kind == Single:
		return "", a.User, nil
	}
	return "", "", ErrNoPassword
}

// Node returns the address of another server in the deployment.
func (a *Address) Node(host string) *Address {
	return &Address{
		Valkey: a.Valkey, Secure: a.Secure, Hosts: []string{host}, DB: a.DB,
		User: a.User, Password: a.Password, UserOnly: a.UserOnly && a.Kind == Single,
	}
}

// Show returns an address as String does, or a placeholder if it is invalid.
func Show(raw string) string {
	a, err := Parse(raw)
	if err != nil {
		return hidden
	}
	return a.String()
}

// String returns the address without credentials and options, truncated to 203 bytes.
func (a *Address) String() string {
	text := a.with("", "")
	if len(text) > most { // escaped, so it is ASCII only
		return text[:most] + "..."
	}
	return text
}

// GoString is like String, so that no format shows a password.
func (a *Address) GoString() string { return a.String() }

// Full returns the address with its passwords, in a form that Parse accepts.
func (a *Address) Full() string {
	user := ""
	switch {
	case a.User != "" && a.UserOnly && a.Password == "":
		user = url.User(a.User).String() + "@"
	case a.User != "" || a.Password != "":
		user = url.UserPassword(a.User, a.Password).String() + "@"
	}
	options := url.Values{}
	for name, value := range map[string]string{
		optSharding: a.Sharding, optSentinelUser: a.SentinelUser, optSentinelPassword: a.SentinelPassword,
	} {
		if value != "" {
			options.Set(name, value)
		}
	}
	if a.Kind == Socket && a.DB != 0 {
		options.Set(optDB, strconv.Itoa(a.DB))
	}
	if len(options) == 0 {
		return a.with(user, "")
	}
	return a.with(user, "?"+options.Encode())
}

func (a *Address) with(user, options string) string {
	if a.Kind == Socket {
		return "unix://" + user + (&url.URL{Path: a.Path}).EscapedPath() + options
	}
	var hosts []string
	for _, host := range a.Hosts {
		hosts = append(hosts, strings.TrimPrefix((&url.URL{Host: host}).String(), "//"))
	}
	text := a.scheme() + "://" + user + strings.Join(hosts, ",")
	if a.Kind == Sentinels {
		text += "/" + url.PathEscape(a.Master)
	}
	if a.DB != 0 {
		text += "/" + strconv.Itoa(a.DB)
	}
	return text + options
}

func (a *Address) scheme() string {
	text := "redis"
	if a.Valkey {
		text = "valkey"
	}
	if a.Secure {
		text += "s"
	}
	switch a.Kind {
	case Cluster:
		return text + "-cluster"
	case Sentinels:
		return text + "-sentinel"
	}
	return text
}

// Server is the address and the credentials of one server.
type Server struct {
	Network, Addr  string // as for net.Dial
	User, Password string
	DB             int
}

// Server returns the server at a single address or a Unix socket.
func (a *Address) Server() Server {
	if a.Kind == Socket {
		s := a.At(a.Path)
		s.Network = "unix"
		return s
	}
	return a.At(a.Hosts[0])
}

// At returns the server at addr, using a's credentials and database.
func (a *Address) At(addr string) Server {
	user, password, _ := a.Credentials() // callers have checked the error
	return Server{Network: "tcp", Addr: addr, User: user, Password: password, DB: a.DB}
}
