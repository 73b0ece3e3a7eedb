package redistest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Proxies is a proxy in front of each of several servers, such as the nodes of a cluster,
// which redirect clients to each other's own addresses: a client whose dialler is Dial goes
// through the proxies. All methods are safe for concurrent use.
type Proxies struct {
	proxies map[string]*Proxy // by the address of what is behind
}

// NewProxies starts a proxy in front of each server. They end with the test.
func NewProxies(tb testing.TB, servers ...*Server) *Proxies {
	tb.Helper()
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return NewProxiesAt(tb, addrs...)
}

// NewProxiesAt is NewFence for servers that are running already, at addrs, host:port.
func NewProxiesAt(tb testing.TB, addrs ...string) *Proxies {
	tb.Helper()
	f := &Proxies{proxies: map[string]*Proxy{}}
	for _, addr := range addrs {
		f.proxies[addr] = NewProxy(tb, addr)
	}
	return f
}

// Dial connects to addr through its proxy, or directly where there is none.
func (f *Proxies) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p := f.proxies[addr]; p != nil {
		addr = p.Addr()
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// Each runs do for every proxy.
func (f *Proxies) Each(do func(p *Proxy)) {
	for _, p := range f.proxies {
		do(p)
	}
}

// Hold holds back the first request with text in it, whichever server it is for, as
// HoldMatching does. It must be released, which may be done more than once.
func (f *Proxies) Hold(text string) (seen <-chan struct{}, release func()) {
	first, released := make(chan struct{}), make(chan struct{})
	var once, over sync.Once
	var held []*Held
	f.Each(func(p *Proxy) {
		p.KeepHalfDead(true)
		h := p.HoldMatching(ToServer, text)
		held = append(held, h)
		go func() {
			select {
			case <-h.Seen():
				once.Do(func() { close(first) })
			case <-released:
			}
		}()
	})
	return first, func() {
		over.Do(func() { close(released) })
		for _, h := range held {
			h.Release()
		}
	}
}
