package loss

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Way is a way in which clients lose Redis or their locks.
type Way struct {
	Name    string
	Forgets bool

	proxied bool // clients connect through a proxy
	lives   bool // the server keeps running
	strike  func(r *ruin)
	repair  func(r *ruin)
}

type ruin struct {
	tb     testing.TB
	server *redistest.Server
	proxy  *redistest.Proxy // nil unless the way is proxied
	keys   []string
}

// Ways returns all ways.
func Ways() []Way {
	return []Way{
		{
			Name:   "frozen",
			strike: func(r *ruin) { r.server.Pause() },
			repair: func(r *ruin) { r.server.Resume() },
		},
		{
			// All traffic to the server is held back.
			Name: "deaf", proxied: true, lives: true,
			strike: func(r *ruin) { r.proxy.Blackhole(redistest.ToServer) },
			repair: func(r *ruin) { r.proxy.Heal() },
		},
		{
			// All traffic from the server is held back.
			Name: "mute", proxied: true, lives: true,
			strike: func(r *ruin) { r.proxy.Blackhole(redistest.ToClient) },
			repair: func(r *ruin) { r.proxy.Heal() },
		},
		{
			Name: "reset", proxied: true, lives: true,
			strike: func(r *ruin) { r.proxy.Refuse(true); r.proxy.Reset() },
			repair: func(r *ruin) { r.proxy.Refuse(false) },
		},
		{
			// SIGKILL kills the server, but its data stays on disk.
			Name:   "killed",
			strike: func(r *ruin) { r.server.Kill() },
			repair: func(r *ruin) { r.server.Restart() },
		},
		{
			Name: "deleted", Forgets: true, lives: true,
			strike: func(r *ruin) { r.server.Do(r.tb, "DEL", redis.Args{}.AddFlat(r.keys)...) },
			repair: func(*ruin) {},
		},
		{
			Name: "replaced", Forgets: true, lives: true,
			strike: func(r *ruin) { r.server.Kill(); r.server.Restart() },
			repair: func(*ruin) {},
		},
	}
}

func (w Way) prepare(tb testing.TB) (*ruin, string) {
	tb.Helper()
	var opts []redistest.Option
	if !w.Forgets {
		opts = append(opts, redistest.WithAppendOnly())
	}
	r := &ruin{tb: tb, server: redistest.Start(tb, opts...)}
	if !w.proxied {
		return r, r.server.Addr()
	}
	r.proxy = redistest.NewProxy(tb, r.server.Addr())
	return r, r.proxy.Addr()
}
