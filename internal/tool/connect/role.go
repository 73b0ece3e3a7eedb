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
	if s.IsDeployment() {
		return "", nil
	}
	c, err := s.Dial(ctx)
	if err != nil {
		return "", err
	}
	// The connection knows nothing of ctx: closing it ends what is under way.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // only read from
	}()
	reply, err := c.Do("ROLE")
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case c.Err() != nil:
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
