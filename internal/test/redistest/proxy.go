package redistest

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Direction is a direction of a Proxy.
type Direction int

// The directions. A method that takes any number of directions applies to both if it is called without one.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy is a TCP proxy between clients and one server. Its methods are safe for concurrent use and do not block. Faults
// apply to existing and future connections. While a direction is held, the proxy keeps its bytes in memory in their
// order, including the end of the connection.
type Proxy struct {
	tb   testing.TB
	addr string
	port *port // reserved even while the proxy refuses connections
	wg   sync.WaitGroup

	mu           sync.Mutex // guards the fields below and the links' queues; never held across I/O
	target       string
	listener     net.Listener
	closed       bool
	links        map[*link]struct{}
	black        [2]bool
	latency      [2]time.Duration
	triggers     [2][]*Held
	keepHalfDead bool
	cut          *cut
}

type cut struct {
	link *link
	left int
}

// NewProxy starts a proxy for the server at targetAddr (host:port). It is closed when the test ends.
func NewProxy(tb testing.TB, targetAddr string) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, target: targetAddr, links: map[*link]struct{}{}}
	l, err := p.settle()
	if err != nil {
		tb.Fatalf("redistest: proxy: %v", err)
	}
	p.serve(l)
	tb.Cleanup(p.Close)
	return p
}

// Addr returns the address to which clients connect, in the form host:port.
func (p *Proxy) Addr() string { return p.addr }

// URL returns the redis:// URL to which clients connect. It does not contain a password.
func (p *Proxy) URL() string { return redisURL(p.addr, "") }

// Blackhole holds the traffic in the given directions until Heal is called.
func (p *Proxy) Blackhole(dirs ...Direction) { p.setBlack(true, dirs) }

// Heal ends Blackhole, and delivers the bytes that were held.
func (p *Proxy) Heal(dirs ...Direction) { p.setBlack(false, dirs) }

func (p *Proxy) setBlack(on bool, dirs []Direction) {
	if len(dirs) == 0 {
		dirs = []Direction{ToServer, ToClient}
	}
	p.change(func() {
		for _, d := range dirs {
			p.black[d] = on
		}
	})
}

// Redirect sends future connections to another server.
func (p *Proxy) Redirect(targetAddr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = targetAddr
}

func (p *Proxy) leadsTo() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Latency delays all future traffic in one direction by d.
func (p *Proxy) Latency(dir Direction, d time.Duration) {
	p.change(func() { p.latency[dir] = d })
}

// KeepHalfDead controls what happens if a client closes its side of a connection while bytes for the server are held.
// By default, the proxy drops the bytes and closes the server's side. If on is true, it keeps the server's side open
// and delivers the bytes later.
func (p *Proxy) KeepHalfDead(on bool) {
	p.change(func() { p.keepHalfDead = on })
}

// Reset cuts all connections with RST and drops held bytes. With KeepHalfDead, it only cuts the clients' sides.
func (p *Proxy) Reset() {
	p.mu.Lock()
	keep := p.keepHalfDead
	links := p.allLinks()
	p.mu.Unlock()
	for _, l := range links {
		l.reset(keep)
	}
}

// Refuse makes the proxy refuse new connections if on is true, and accept them again if it is false.
func (p *Proxy) Refuse(on bool) {
	p.tb.Helper()
	p.mu.Lock()
	old := p.listener
	if on {
		p.listener = nil
	}
	closed := p.closed
	p.mu.Unlock()
	switch {
	case on && old != nil:
		stopListening(old)
	case !on && old == nil && !closed:
		l, err := p.port.listen()
		if err != nil {
			p.tb.Fatalf("redistest: proxy: %v", err)
		}
		p.serve(l)
	}
}

// CutReplyAfter cuts the connection of the first client that receives a reply, after n bytes.
func (p *Proxy) CutReplyAfter(n int) {
	p.change(func() { p.cut = &cut{left: n} })
}

// Connections returns the number of connections that the clients have not closed.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if !l.pipes[ToServer].ended {
			n++
		}
	}
	return n
}

// Holding returns the number of bytes that are queued in a direction.
func (p *Proxy) Holding(dir Direction) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		for _, s := range l.pipes[dir].queue {
			n += len(s.data)
		}
	}
	return n
}

// Close closes the proxy and waits for its goroutines. It is idempotent.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	listener := p.listener
	p.listener = nil
	links := p.allLinks()
	p.mu.Unlock()
	if listener != nil {
		stopListening(listener)
	}
	for _, l := range links {
		l.reset(false)
	}
	p.wg.Wait()
}

func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	for l := range p.links {
		for _, q := range l.pipes {
			q.poke()
		}
	}
}

// allLinks must be called with p.mu held.
func (p *Proxy) allLinks() []*link {
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *Proxy) serve(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener != nil {
		stopListening(l)
		return
	}
	p.listener = l
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.accept(c.(*net.TCPConn), l)
		}
	})
}

func (p *Proxy) accept(client *net.TCPConn, from net.Listener) {
	ctx, kill := context.WithCancel(context.Background())
	l := newLink(p, client, ctx.Done(), kill)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != from {
		l.reset(false) // Refuse or Close was called in the meantime and has not seen this link
		return
	}
	p.links[l] = struct{}{}
	p.wg.Go(func() {
		l.run(ctx)
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	})
}

const maxPattern = 1024

// Held is returned by HoldMatching.
type Held struct {
	proxy   *Proxy
	dir     Direction
	pattern []byte
	seen    chan struct{}

	released bool // guarded by proxy.mu
}

// HoldMatching waits for the first connection on which text is sent in the given direction. It holds that direction of
// the connection from the beginning of the text until Release is called, so that earlier commands still run. The text
// must be 1 to 1024 bytes long.
func (p *Proxy) HoldMatching(dir Direction, text string) *Held {
	p.tb.Helper()
	if text == "" || len(text) > maxPattern {
		p.tb.Fatalf("redistest: HoldMatching takes 1 to %d bytes, not %d", maxPattern, len(text))
	}
	h := &Held{proxy: p, dir: dir, pattern: []byte(text), seen: make(chan struct{})}
	p.change(func() { p.triggers[dir] = append(p.triggers[dir], h) })
	return h
}

// Seen returns a channel that is closed when the text has been seen and is held.
func (h *Held) Seen() <-chan struct{} { return h.seen }

// Release delivers the held bytes. If the text has not been seen yet, Release cancels the call to HoldMatching. It is
// idempotent.
func (h *Held) Release() {
	p := h.proxy
	p.change(func() {
		h.released = true
		p.dropTrigger(h)
	})
}

// dropTrigger must be called with p.mu held.
func (p *Proxy) dropTrigger(h *Held) {
	p.triggers[h.dir] = slices.DeleteFunc(p.triggers[h.dir], func(o *Held) bool { return o == h })
}

type match struct {
	held *Held
	at   int
}

// matches returns the texts that end in data, and removes their triggers. A text that began in an earlier read is
// reported at 0. It must be called with the proxy's mu held.
func (q *pipe) matches(data []byte) []match {
	p := q.link.proxy
	window := slices.Concat(q.tail, data)
	known := len(q.tail)
	var found []match
	for _, h := range slices.Clone(p.triggers[q.dir]) {
		// Only texts that end in data match.
		from := max(0, known-len(h.pattern)+1)
		i := bytes.Index(window[from:], h.pattern)
		if i < 0 {
			continue
		}
		found = append(found, match{held: h, at: max(0, from+i-known)})
		p.dropTrigger(h)
		close(h.seen)
	}
	q.tail = bytes.Clone(window[max(0, len(window)-maxPattern):])
	slices.SortFunc(found, func(a, b match) int { return a.at - b.at })
	return found
}
