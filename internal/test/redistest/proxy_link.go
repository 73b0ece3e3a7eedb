package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

type link struct {
	proxy  *Proxy
	client *net.TCPConn
	pipes  [2]*pipe
	dead   <-chan struct{}
	kill   func()

	mu     sync.Mutex // guards server; never held across I/O
	server *net.TCPConn
}

type pipe struct {
	link *link
	dir  Direction
	wake chan struct{}

	// Guarded by the proxy's mu.
	queue []segment
	ended bool
	tail  []byte // the last bytes read, for texts that are split across reads
}

type segment struct {
	data []byte
	end  bool
	due  time.Time
	held *Held // if not nil, the segment waits until this is released
}

func newLink(p *Proxy, client *net.TCPConn, dead <-chan struct{}, kill func()) *link {
	l := &link{proxy: p, client: client, dead: dead, kill: kill}
	for _, d := range []Direction{ToServer, ToClient} {
		l.pipes[d] = &pipe{link: l, dir: d, wake: make(chan struct{}, 1)}
	}
	return l
}

func (l *link) run(ctx context.Context) {
	defer l.kill()
	c, err := (&net.Dialer{Timeout: startTimeout}).DialContext(ctx, "tcp", l.proxy.leadsTo())
	if err != nil {
		l.reset(false)
		return
	}
	server := c.(*net.TCPConn)
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	select {
	case <-l.dead:
		_ = server.Close()
		return
	default:
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.pipes[ToServer].read(l.client) })
	wg.Go(func() { l.pipes[ToClient].read(server) })
	wg.Go(func() { l.pipes[ToServer].write(server) })
	wg.Go(func() {
		l.pipes[ToClient].write(l.client)
		// The server has closed its side and does not read further bytes, so the link ends.
		_ = l.client.Close()
		_ = server.Close()
	})
	wg.Wait()
}

func (l *link) reset(keepServer bool) {
	cutOff(l.client)
	if keepServer {
		return
	}
	l.kill()
	l.mu.Lock()
	server := l.server
	l.mu.Unlock()
	if server != nil {
		cutOff(server)
	}
}

// cutOff closes c with RST. A process that is being forked has copies of all sockets, which would keep the connection
// open. The fork lock prevents this in most cases.
func cutOff(c *net.TCPConn) {
	_ = c.SetLinger(0)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	_ = c.Close()
}

func (q *pipe) read(src net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		q.push(buf[:n], err != nil)
		if err != nil {
			return
		}
	}
}

func (q *pipe) push(data []byte, end bool) {
	p := q.link.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	due := time.Now().Add(p.latency[q.dir])
	from := 0
	for _, m := range q.matches(data) {
		q.add(segment{data: bytes.Clone(data[from:m.at]), due: due})
		q.add(segment{held: m.held, due: due})
		from = m.at
	}
	q.add(segment{data: bytes.Clone(data[from:]), due: due})
	if end {
		q.add(segment{end: true, due: due})
		q.ended = true
		// Bytes that are held in the other direction may now be dropped.
		q.link.pipes[1-q.dir].poke()
	}
	q.poke()
}

func (q *pipe) add(s segment) {
	if len(s.data) > 0 || s.end || s.held != nil {
		q.queue = append(q.queue, s)
	}
}

func (q *pipe) write(dst *net.TCPConn) {
	broken := false
	for {
		s := q.next()
		if s.data != nil && !broken {
			// If dst is closed, the source must not notice this before its own connection ends. Therefore the
			// remaining bytes are discarded.
			_, err := dst.Write(s.data)
			broken = err != nil
		}
		switch s.then {
		case goOn:
		case await:
			if !q.await(s.delay) {
				return
			}
		case finish:
			_ = dst.CloseWrite()
			return
		case cutLink:
			q.link.reset(false)
			return
		}
	}
}

// await waits for a call to poke, but no longer than delay unless it is zero. It reports whether the link is alive.
func (q *pipe) await(delay time.Duration) bool {
	var timeout <-chan time.Time
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case <-q.wake:
	case <-timeout:
	case <-q.link.dead:
		return false
	}
	return true
}

type step struct {
	data  []byte
	then  verb
	delay time.Duration
}

type verb int

const (
	goOn verb = iota
	await
	finish
	cutLink
)

func (q *pipe) next() step {
	p := q.link.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.heldBack() {
		if !q.forgotten() {
			return step{then: await}
		}
		q.queue = nil
		return step{then: finish}
	}
	if len(q.queue) == 0 {
		return step{then: await}
	}
	s := q.queue[0]
	if wait := time.Until(s.due); wait > 0 {
		return step{then: await, delay: wait}
	}
	q.queue = q.queue[1:]
	if s.end {
		return step{then: finish}
	}
	if q.dir == ToClient && s.data != nil {
		return q.cutShort(s.data)
	}
	return step{data: s.data}
}

func (q *pipe) heldBack() bool {
	if q.link.proxy.black[q.dir] {
		return true
	}
	return len(q.queue) > 0 && q.queue[0].held != nil && !q.queue[0].held.released
}

// forgotten reports whether held bytes can be dropped because the client and the source of the bytes have closed their
// sides and KeepHalfDead is not set.
func (q *pipe) forgotten() bool {
	clientGone := q.link.pipes[ToServer].ended
	return clientGone && q.ended && !q.link.proxy.keepHalfDead
}

func (q *pipe) cutShort(data []byte) step {
	c := q.link.proxy.cut
	if c == nil || c.link != nil && c.link != q.link {
		return step{data: data}
	}
	c.link = q.link
	if len(data) < c.left {
		c.left -= len(data)
		return step{data: data}
	}
	q.link.proxy.cut = nil
	return step{data: data[:c.left], then: cutLink}
}

func (q *pipe) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Proxies is a set of proxies, one for each of several servers. Clients must connect with its method Dial, because
// cluster nodes redirect them to the addresses of other nodes. It is safe for concurrent use.
type Proxies struct {
	proxies map[string]*Proxy
}

// NewProxies starts a proxy for each address (host:port). The proxies are closed when the test ends.
func NewProxies(tb testing.TB, addrs ...string) *Proxies {
	tb.Helper()
	f := &Proxies{proxies: map[string]*Proxy{}}
	for _, addr := range addrs {
		f.proxies[addr] = NewProxy(tb, addr)
	}
	return f
}

// Dial connects to addr through its proxy, or directly if there is none.
func (f *Proxies) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p := f.proxies[addr]; p != nil {
		addr = p.Addr()
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// Each calls do for every proxy.
func (f *Proxies) Each(do func(p *Proxy)) {
	for _, p := range f.proxies {
		do(p)
	}
}

// Hold is like HoldMatching for the first request with the text to any of the servers. The caller must call release.
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
