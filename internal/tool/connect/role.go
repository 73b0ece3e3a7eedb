package connect

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// Master returns host:port of the master that the server is a replica of, "" when it is none,
// when that may not be asked, and for clusters and Sentinels, which name masters. It sends
// ROLE on a connection of its own. Its errors are those of Dial.
func (s *Server) Master(ctx context.Context) (string, error) {
	if s.many != nil {
		return "", nil
	}
	c, err := s.Dial(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // only read from
	reply, err := c.Do("ROLE")
	if c.Err() != nil {
		return "", s.Problem(err)
	}
	return masterOf(reply, err), nil
}

// masterOf reads the reply to ROLE.
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
