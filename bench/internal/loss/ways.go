package loss

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Way is a way to lose Redis.
type Way struct {
	Name string
	// Forgets reports whether the server loses the lock.
	Forgets bool

	proxied bool // clients go through the proxy
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
			// SIGSTOP: the kernel still accepts connections and bytes.
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
			// Connections are reset, and new ones refused.
			Name: "reset", proxied: true, lives: true,
			strike: func(r *ruin) { r.proxy.Refuse(true); r.proxy.Reset() },
			repair: func(r *ruin) { r.proxy.Refuse(false) },
		},
		{
			// SIGKILL: the data stays on disk.
			Name:   "killed",
			strike: func(r *ruin) { r.server.Kill() },
			repair: func(r *ruin) { r.server.Restart() },
		},
		{
			// The keys are deleted.
			Name: "deleted", Forgets: true, lives: true,
			strike: func(r *ruin) { r.server.Do(r.tb, "DEL", redis.Args{}.AddFlat(r.keys)...) },
			repair: func(*ruin) {},
		},
		{
			// SIGKILL, then an empty server at the same address.
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
