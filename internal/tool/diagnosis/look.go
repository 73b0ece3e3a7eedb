package diagnosis

import (
	"context"
	"slices"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Place is a server that Look looks at: the server itself, or a master of a cluster.
type Place struct {
	// Name is what it is called, without user and password, "" when there is only one.
	Name string
	// Conn is a connection to it, for Look alone.
	Conn redis.Conn
}

// Looking is what is to be looked at.
type Looking struct {
	// Client is a client of the server's or the cluster's, with its clock.
	Client *redlatch.Client
	// Places are the server, or all masters when Cluster is true; one at least, unless Away has one.
	Places []Place
	// Away is why other masters cannot be looked at.
	Away    []error
	Cluster bool
	// Problem makes an error of the server's one for people.
	Problem func(error) error
}

// Look makes those checks of Examine that change nothing and try nothing: no lock is taken, no
// script is run, no message is sent, and rights are not tried. So a user that may only read gets
// findings that are about the server. An error says that it was lost on the way. It sends INFO,
// CONFIG GET, PUBSUB, ACL WHOAMI, TIME, CLUSTER INFO and CLUSTER NODES to masters of a cluster, and 20
// PINGs.
func Look(ctx context.Context, l Looking) ([]Finding, error) {
	var exams []*examination
	for _, at := range l.Places {
		if err := answers(at.Conn); err != nil {
			l.Away = append(l.Away, l.Problem(err))
			continue
		}
		e := &examination{ctx: ctx, place: at.Name, problem: l.Problem, looks: true, c: at.Conn, client: l.Client, name: "redlatch-doctor"}
		if l.Cluster {
			e.masters = len(l.Places)
		}
		e.read()
		exams = append(exams, e)
	}
	return findingsOf(exams, l.Away)
}

// LookAt looks at a server, on connections of its own, with a client of that server. Its errors
// are those of Look and of connect.Server.Dial.
func LookAt(ctx context.Context, srv *connect.Server, client *redlatch.Client) ([]Finding, error) {
	masters, err := srv.Masters(ctx)
	if err != nil {
		return nil, err
	}
	l := Looking{Client: client, Cluster: srv.IsCluster(), Problem: srv.Problem}
	for _, master := range masters {
		c, err := master.Dial(ctx)
		if err != nil {
			l.Away = append(l.Away, err)
			continue
		}
		// The connection knows nothing of ctx: closing it ends what is under way.
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer func() {
			stop()
			_ = c.Close() // only read from
		}()
		l.Places = append(l.Places, Place{master.Place(), c})
	}
	return Look(ctx, l)
}

// NotLooked are the checks of Examine that Look leaves out, in the order of the output.
func NotLooked() (names []string) {
	looks := &examination{}
	for _, c := range looks.checks() {
		if !c.look {
			names = append(names, c.name)
		}
	}
	return slices.Compact(names)
}
