package mux_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/scripted"
)

const (
	ok      = scripted.OK
	silence = scripted.Silence
	hangUp  = scripted.HangUp
)

// peer is a server in memory. It answers PING and CLIENT, and replies to other commands by repeating them, unless a
// handler has answered.
type peer struct {
	scripted.Server
	t    *testing.T // of onPeer and onLed
	led  bool       // callers can read its connections
	wrap func(redis.Conn) redis.Conn
}

func newPeer() *peer {
	p := &peer{}
	p.Client = func(conn net.Conn) redis.Conn {
		c := redis.NewConn(conn, 0, 0)
		if p.led {
			c = respconn.NewConn(newSeen(conn), 0)
		}
		if p.wrap != nil {
			c = p.wrap(c)
		}
		return c
	}
	return p.answer(nil)
}

// on sets the handler for commands.
func (p *peer) on(handle func(conn int, args []string) (reply string, handled bool)) *peer {
	p.Answer(func(conn int, args []string) string {
		if r, handled := handle(conn, args); handled {
			return r
		}
		switch command := strings.Join(args, " "); command {
		case "PING":
			return "+PONG\r\n"
		case "CLIENT ID":
			return fmt.Sprintf(":%d\r\n", 100+conn)
		case "CLIENT INFO":
			return redistest.Bulk(fmt.Sprintf("id=%d addr=10.0.0.1:%d laddr=10.0.0.2:6379 name=", 100+conn, conn))
		default:
			return redistest.Bulk(command)
		}
	})
	return p
}

// answer sets the reply to each command.
func (p *peer) answer(replies map[string]string) *peer {
	return p.on(func(_ int, args []string) (string, bool) {
		r, handled := replies[args[0]]
		return r, handled
	})
}

func (p *peer) dialed() int { return len(p.Dials()) }

// commands returns all commands except the greeting.
func (p *peer) commands() []string {
	return slices.DeleteFunc(p.Commands(), func(c string) bool { return c == "PING" || c == "CLIENT ID" || c == "CLIENT INFO" })
}

func (p *peer) config() mux.Config { return mux.Config{Dial: p.Dial} }

// gated is a connection whose Flush blocks once armed.
type gated struct {
	redis.ConnWithTimeout
	armed chan struct{} // once closed, Flush waits
	gate  chan struct{} // once closed, Flush continues
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

// hooked is a connection that calls before in each Send and closes the channel closed in Close.
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
