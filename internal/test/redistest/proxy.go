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

// Direction is one of the two ways through a Proxy.
type Direction int

// The directions of a Proxy. Methods that take any number of them mean both
// when given none.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy is a breakable network between clients and one server: TCP on the
// loopback interface. All methods are safe for concurrent use and return at
// once. A fault acts on the connections there are and on those to come.
//
// What it holds back it keeps in memory, without limit, in order, the end of
// the connection included: a side does not learn that the other is gone while
// the direction is held.
type Proxy struct {
	tb   testing.TB
	addr string
	port *port          // its own, also while it refuses
	wg   sync.WaitGroup // the accept loop and the links

	mu           sync.Mutex // guards what follows and the links' queues; never held across I/O
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

// cut is an order to break a reply.
type cut struct {
	link *link // the connection it struck, once it has
	left int   // bytes that still pass
}

// NewProxy starts a proxy in front of the server at targetAddr, host:port. It
// ends with the test.
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

// Addr returns the address for clients, host:port.
func (p *Proxy) Addr() string { return p.addr }

// URL returns the address for clients as a redis:// URL without a password.
func (p *Proxy) URL() string { return redisURL(p.addr, "") }

// Blackhole holds back all that goes in the given directions from now on.
func (p *Proxy) Blackhole(dirs ...Direction) { p.setBlack(true, dirs) }

// Heal delivers what Blackhole holds back and lets the directions pass again.
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

// Redirect leads the connections to come to another server. Those there are stay where
// they are, as behind a name or an address that moves.
func (p *Proxy) Redirect(targetAddr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = targetAddr
}

// leadsTo returns the address of the server.
func (p *Proxy) leadsTo() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Latency delays all that goes in the direction from now on by d, and nothing
// when d is zero. The order is kept.
func (p *Proxy) Latency(dir Direction, d time.Duration) {
	p.change(func() { p.latency[dir] = d })
}

// KeepHalfDead sets what happens when a client closes its side of a connection
// while the proxy holds back bytes for the server. Off, the default: the proxy
// forgets them and closes the server's side. On: it keeps the server's side
// open and delivers them when they are let go, as a network does that is slow
// and not dead.
func (p *Proxy) KeepHalfDead(on bool) {
	p.change(func() { p.keepHalfDead = on })
}

// Reset cuts all connections with RST, and what is held back on them is lost.
// With KeepHalfDead on it cuts only the client's side.
func (p *Proxy) Reset() {
	p.mu.Lock()
	keep := p.keepHalfDead
	links := p.allLinks()
	p.mu.Unlock()
	for _, l := range links {
		l.reset(keep)
	}
}

// Refuse makes the proxy refuse new connections, as a port without a listener does, or take
// them again.
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

// CutReplyAfter lets n more bytes through to the client that is answered next,
// then cuts its connection with RST. It strikes once.
func (p *Proxy) CutReplyAfter(n int) {
	p.change(func() { p.cut = &cut{left: n} })
}

// Connections returns how many connections have a client that has not gone.
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

// Holding returns how many bytes wait in the direction: held back, delayed, or
// about to be written.
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

// Close ends the proxy and its connections, whatever they are held up by, and
// waits for its goroutines. It may be called more than once.
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

// change alters the faults and has every connection look at them.
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

// allLinks is called with p.mu held.
func (p *Proxy) allLinks() []*link {
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// serve accepts connections from l until it is closed.
func (p *Proxy) serve(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener != nil {
		stopListening(l) // a concurrent call was faster
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

// accept gives a client that came by from its link, which runs until both sides are
// done.
func (p *Proxy) accept(client *net.TCPConn, from net.Listener) {
	ctx, kill := context.WithCancel(context.Background())
	l := newLink(p, client, ctx.Done(), kill)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != from {
		l.reset(false) // Refuse or Close came between: it is none of the links that they saw
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

// maxPattern bounds the text HoldMatching looks for, in bytes.
const maxPattern = 1024

// Held is a connection that HoldMatching stops in one direction, or will.
type Held struct {
	proxy   *Proxy
	dir     Direction
	pattern []byte
	seen    chan struct{}

	released bool // guarded by proxy.mu
}

// HoldMatching waits for the first connection that carries text in the
// direction, and holds it back there from that text on until Release. What
// stands before the text passes, so a command with the text in it does not run,
// and those before it do. Other connections pass, also with that text. Text of
// more than 1024 bytes, or none, ends the test.
func (p *Proxy) HoldMatching(dir Direction, text string) *Held {
	p.tb.Helper()
	if text == "" || len(text) > maxPattern {
		p.tb.Fatalf("redistest: HoldMatching takes 1 to %d bytes, not %d", maxPattern, len(text))
	}
	h := &Held{proxy: p, dir: dir, pattern: []byte(text), seen: make(chan struct{})}
	p.change(func() { p.triggers[dir] = append(p.triggers[dir], h) })
	return h
}

// Seen returns a channel that is closed when the text has come and is held.
func (h *Held) Seen() <-chan struct{} { return h.seen }

// Release delivers what was held and lets the connection pass. If the text has
// not come, it no longer matters. It may be called more than once.
func (h *Held) Release() {
	p := h.proxy
	p.change(func() {
		h.released = true
		p.dropTrigger(h)
	})
}

// dropTrigger is called with p.mu held.
func (p *Proxy) dropTrigger(h *Held) {
	p.triggers[h.dir] = slices.DeleteFunc(p.triggers[h.dir], func(o *Held) bool { return o == h })
}

// match is where a text was found in what was just read.
type match struct {
	held *Held
	at   int
}

// matches finds the texts that data completes and takes them off the proxy's
// list. A text that began in an earlier read is found at 0: that part has
// passed. It is called with the proxy's mu held.
func (q *pipe) matches(data []byte) []match {
	p := q.link.proxy
	window := slices.Concat(q.tail, data)
	known := len(q.tail)
	var found []match
	for _, h := range slices.Clone(p.triggers[q.dir]) {
		// Only matches that end in data: the rest passed before h was set.
		from := max(0, known-len(h.pattern)+1)
		i := bytes.Index(window[from:], h.pattern)
		if i < 0 {
			continue
		}
		found = append(found, match{held: h, at: max(0, from+i-known)})
		p.dropTrigger(h)
		close(h.seen)
	}
	q.tail = clone(window[max(0, len(window)-maxPattern):])
	slices.SortFunc(found, func(a, b match) int { return a.at - b.at })
	return found
}
