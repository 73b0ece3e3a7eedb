package inspect

import (
	"context"

	"github.com/redlatch/redlatch/internal/tool/connect"
)

// RunOnMasters finds the locks on all masters, one after the other, as r says;
// its connections are made here. If some masters fail and others do not, Unread reports it.
// Its errors are those of Found, and those of connect.Server.Problem.
func RunOnMasters(ctx context.Context, srv *connect.Server, r Request) (Unread, error) {
	var unread Unread
	masters, err := srv.Masters(ctx)
	if err != nil {
		return unread, err
	}
	if srv.IsCluster() {
		// The label of a client may be on another node than its lock.
		labels, err := srv.Dial(ctx)
		if err != nil {
			return unread, err
		}
		defer func() { _ = labels.Close() }() // only read from
		r.Labels = labels
	}
	progress, away := r.Progress, 0
	for i, master := range masters {
		r.Progress = func(done float64) {
			if progress != nil {
				progress((float64(i) + done) / float64(len(masters)))
			}
		}
		some, err := runMaster(ctx, master, r)
		unread.Add(some)
		if err != nil {
			return unread, err
		}
		if some.Away != nil {
			away++
		}
	}
	if away == len(masters) {
		return unread, unread.Away
	}
	return unread, nil
}

// runMaster finds the locks on one master. The error is that of Found or of ctx.
func runMaster(ctx context.Context, master *connect.Server, r Request) (Unread, error) {
	c, err := master.Dial(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return Unread{}, ctx.Err()
	case err != nil:
		return Unread{Away: err}, nil
	}
	// The connection knows nothing of ctx: closing it ends what is under way.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // only read from
	}()
	var broken error // an error of Found: not the server's problem
	found := r.Found
	r.Conn, r.Found = c, func(l *Lock) error {
		broken = found(l)
		return broken
	}
	unread, err := Run(ctx, r)
	switch {
	case ctx.Err() != nil:
		return unread, ctx.Err()
	case broken != nil:
		return unread, broken
	case err != nil:
		unread.Away = master.Problem(err)
	}
	return unread, nil
}

// PauseFactor is how many times as long as a look the pause after it is, at least.
const PauseFactor = 4
