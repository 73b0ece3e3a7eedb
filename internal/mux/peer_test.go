package mux_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	ok      = "+OK\r\n"
	silence = ""      // no reply
	hangUp  = "\x00"  // close the connection after the reply
	silent  = "\x00d" // stop reading until stop
)

// peer is a scripted server behind net.Pipe, for fake time. It answers PING and CLIENT unless a handler
// does.
type peer struct {
	t     *testing.T    // of onPeer and onLed
	stop  chan struct{} // closed by tests that use silent
	led   bool          // callers can read its connections
	delay func()        // if not nil, it delays each reply

	mu      sync.Mutex // guards what follows
	handle  func(conn int, args []string) (reply string, handled bool)
	dialErr error
	dials   int
	seen    []string // all commands except the greeting
	wrap    func(redis.Conn) redis.Conn
	conns   map[int]net.Conn
}

// on sets the handler of commands.
func (p *peer) on(f func(conn int, args []string) (string, bool)) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle = f
	return p
}

// answer sets the replies by command.
func (p *peer) answer(replies map[string]string) *peer {
	return p.on(func(_ int, args []string) (string, bool) {
		r, handled := replies[args[0]]
		return r, handled
	})
}

func (p *peer) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialErr = err
}

func (p *peer) dialled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

func (p *peer) commands() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// say sends an unsolicited reply.
func (p *peer) say(conn int, reply string) {
	p.mu.Lock()
	c := p.conns[conn]
	p.mu.Unlock()
	p.write(c, reply)
}

func (p *peer) dial(context.Context) (redis.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials++
	if p.dialErr != nil {
		return nil, p.dialErr
	}
	ours, theirs := net.Pipe()
	if p.conns == nil {
		p.conns = map[int]net.Conn{}
	}
	p.conns[p.dials] = theirs
	go p.serve(p.dials, theirs)
	c := redis.NewConn(ours, 0, 0)
	if p.led {
		c = respconn.NewConn(newSeen(ours), 0)
	}
	if p.wrap != nil {
		c = p.wrap(c)
	}
	return c, nil
}

func (p *peer) config() mux.Config { return mux.Config{Dial: p.dial} }

func (p *peer) serve(conn int, c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		args, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		if p.delay != nil {
			p.delay()
		}
		reply := p.reply(conn, args)
		if reply == silent {
			<-p.stop
			return
		}
		if !p.write(c, reply) {
			return
		}
	}
}

func (p *peer) write(c net.Conn, reply string) bool {
	text, end := strings.CutSuffix(reply, hangUp)
	if text != "" {
		if _, err := io.WriteString(c, text); err != nil {
			return false
		}
	}
	if end {
		_ = c.Close()
	}
	return !end
}

func (p *peer) reply(conn int, args []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle != nil {
		if r, handled := p.handle(conn, args); handled {
			p.note(args)
			return r
		}
	}
	switch args[0] {
	case "PING":
		return "+PONG\r\n"
	case "CLIENT":
		if args[1] == "ID" {
			return fmt.Sprintf(":%d\r\n", 100+conn)
		}
		if args[1] == "INFO" {
			return redistest.Bulk(fmt.Sprintf("id=%d addr=10.0.0.1:%d laddr=10.0.0.2:6379 name=", 100+conn, conn))
		}
	}
	p.note(args)
	return redistest.Bulk(strings.Join(args, " "))
}

func (p *peer) note(args []string) {
	if args[0] != "PING" && strings.Join(args, " ") != "CLIENT ID" && strings.Join(args, " ") != "CLIENT INFO" {
		p.seen = append(p.seen, strings.Join(args, " "))
	}
}

// gated is a connection whose Flush blocks once armed.
type gated struct {
	redis.ConnWithTimeout
	armed chan struct{} // closed: Flush waits
	gate  chan struct{} // closed: Flush continues
}

func (g *gated) Unwrap() redis.Conn { return g.ConnWithTimeout }

func (g *gated) Flush() error {
	select {
	case <-g.armed:
		<-g.gate
	default:
	}
	return g.ConnWithTimeout.Flush()
}

// hooked is a connection that calls before in each Send, and closes closed with the connection.
type hooked struct {
	redis.ConnWithTimeout
	before func(h *hooked, args []any) error
	once   sync.Once
	closed chan struct{}
}

func (h *hooked) Send(name string, args ...any) error {
	if err := h.before(h, args); err != nil {
		return err
	}
	return h.ConnWithTimeout.Send(name, args...)
}

func (h *hooked) Close() error {
	err := h.ConnWithTimeout.Close()
	h.once.Do(func() { close(h.closed) })
	return err
}

// gate makes the peer's connections gated.
func (p *peer) gate() *gated {
	g := &gated{armed: make(chan struct{}), gate: make(chan struct{})}
	p.wrap = func(c redis.Conn) redis.Conn {
		inner, _ := c.(redis.ConnWithTimeout)
		return &gated{ConnWithTimeout: inner, armed: g.armed, gate: g.gate}
	}
	return g
}
