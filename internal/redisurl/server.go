package redisurl

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Server is one server, and the user and the database there.
type Server struct {
	// Network and Addr are as for net.Dial: host:port, or the path of a socket.
	Network, Addr string
	// User and Password are empty where the server asks for none.
	User, Password string
	// DB is the number of the database.
	DB int
}

// ServerOf returns the server that u, an address that was checked, names. A user without a
// password is the password, as for redis-cli, but not on a socket.
func ServerOf(u *url.URL) Server {
	s := Server{Network: "tcp", User: u.User.Username()}
	s.Password, _ = u.User.Password()
	db := strings.Trim(u.Path, "/")
	if u.Scheme == "unix" {
		s.Network, s.Addr, db = "unix", u.Path, u.Query().Get("db")
	} else {
		s.Addr = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), nodePort))
		if _, given := u.User.Password(); !given {
			s.User, s.Password = "", s.User
		}
	}
	s.DB, _ = strconv.Atoi(db) // "" is 0
	return s
}
