// Package redisurl parses the addresses that the library and its programs accept: one
// server, a Unix socket, a cluster, or the Sentinels of a master. Its errors name the part
// that is wrong and repeat nothing of the address: any part of a mistyped one may belong
// to a password. It is pure.
package redisurl

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

const (
	// hidden stands for an address that cannot be parsed.
	hidden = "the given address"
	// most is how much of an address is shown, in bytes.
	most = 200
	// longest is the maximum length of an address.
	longest = 4096
)

// Kind is what an address leads to.
type Kind int

// The kinds of addresses.
const (
	Single Kind = iota
	Socket
	Cluster
	Sentinels
)

// Address is an address that [Parse] has taken apart.
type Address struct {
	// Kind is what the address leads to.
	Kind Kind
	// Valkey is whether the scheme says valkey in place of redis, which means the same.
	Valkey bool
	// Secure is whether connections use TLS, also those to Sentinels.
	Secure bool
	// User and Password are the credentials for the servers, see Credentials. UserOnly
	// is whether the user has no colon behind it.
	User, Password string
	UserOnly       bool
	// Hosts are the addresses, host:port, of the server, of nodes or of Sentinels.
	Hosts []string
	// Path is the file of a Unix socket.
	Path string
	// Master is the Sentinels' name for the master.
	Master string
	// DB is the number of the database, 0 for a cluster.
	DB int
	// SentinelUser and SentinelPassword are the credentials for the Sentinels.
	SentinelUser, SentinelPassword string
	// Sharding says how a cluster publishes messages: auto, on, off or "".
	Sharding string
}

// ErrNoPassword is the error of Credentials.
var ErrNoPassword = errors.New("its user needs a password, any for a user with nopass")

// Several reports whether the address is that of a cluster or of Sentinels.
func (a *Address) Several() bool { return a.Kind == Cluster || a.Kind == Sentinels }

// Credentials returns the user and the password to log in with. In the address of one
// server, text before the @ without a colon is a password. Other users need a password:
// without one the server would not be sent the user, and would use its default one.
func (a *Address) Credentials() (user, password string, err error) {
	switch {
	case a.User == "" || a.Password != "":
		return a.User, a.Password, nil
	case a.UserOnly && a.Kind == Single:
		return "", a.User, nil
	}
	return "", "", ErrNoPassword
}

// Node returns the address of the server at host:port, which is reached as a's servers are.
func (a *Address) Node(host string) *Address {
	return &Address{
		Valkey: a.Valkey, Secure: a.Secure, Hosts: []string{host}, DB: a.DB,
		User: a.User, Password: a.Password, UserOnly: a.UserOnly && a.Kind == Single,
	}
}

// Show returns an address without credentials and options, 203 bytes at most.
func Show(raw string) string {
	a, err := Parse(raw)
	if err != nil {
		return hidden
	}
	return a.String()
}

// String returns the address without credentials and options, 203 bytes at most.
func (a *Address) String() string {
	text := a.with("", "")
	if len(text) > most { // it is escaped: every byte is one character
		return text[:most] + "..."
	}
	return text
}

// GoString returns what String does, so that no format shows a password.
func (a *Address) GoString() string { return a.String() }

// Full returns the whole address with its passwords. Parse accepts it.
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

// with returns the address with these parts.
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

// scheme returns the scheme of an address that is not a socket's.
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

// Server is one server, and the user and the database there.
type Server struct {
	// Network and Addr are as for net.Dial: host:port, or the path of a socket.
	Network, Addr string
	// User and Password are empty where the server asks for none.
	User, Password string
	// DB is the number of the database.
	DB int
}

// Server returns the server at the address of one server or of a Unix socket.
func (a *Address) Server() Server {
	if a.Kind == Socket {
		s := a.At(a.Path)
		s.Network = "unix"
		return s
	}
	return a.At(a.Hosts[0])
}

// At returns the server at addr, host:port, with the credentials and the database of a.
func (a *Address) At(addr string) Server {
	user, password, _ := a.Credentials() // those who need them have checked them
	return Server{Network: "tcp", Addr: addr, User: user, Password: password, DB: a.DB}
}
