package mux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

var errNoFence = errors.New("mux: the server does not know the call's connection")

// Fence returns nil if call has run or will never run. The call must have been abandoned, or its done callback must
// have been called. If Fence returns an error, the call is still in doubt. ctx limits how long Fence waits.
//
// Fence kills the connection of the call with CLIENT KILL ID, unless it is the current one. On the current connection,
// the reply to a later PING proves that the call is over, without affecting other calls. If the user may not run
// CLIENT KILL or the server doesn't know it, later calls return that error without sending the command.
func (m *Mux) Fence(ctx context.Context, call *transport.Call) error {
	name := call.Conn()
	if name == 0 {
		return m.nameless()
	}
	who, live, ok := m.history.find(name)
	if !ok {
		return errNoFence
	}
	if live {
		if m.passed(ctx, name) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("mux: no reply on the call's connection: %w", context.Cause(ctx))
		}
	}
	return m.kill(ctx, who)
}

func (m *Mux) nameless() error {
	refusal := m.history.latest().noID
	if refusal == "" {
		return errNoFence
	}
	err := fmt.Errorf("%w: %w", errNoFence, &transport.ServerError{Text: refusal})
	m.deny("+client|id", err)
	return err
}

// deny records that calls in doubt cannot be fenced, and logs it once. right is the missing permission, or "" if the
// server lacks the command.
func (m *Mux) deny(right string, err error) {
	if m.denied.Swap(&err) != nil {
		return
	}
	m.cfg.Logger.Warn("redlatch: cannot fence in-doubt calls: polling them for one lease",
		"right", right, "error", err)
}

// passed reports whether the connection with the given name replied to PING. A server runs the commands of a
// connection in order.
func (m *Mux) passed(ctx context.Context, name int64) bool {
	ping := &transport.Call{Command: "PING"}
	_, err := Do(ctx, m, ping)
	var refusal *transport.ServerError
	answered := err == nil || errors.As(err, &refusal)
	return answered && ping.Conn() == name
}

func (m *Mux) kill(ctx context.Context, who identity) error {
	if denied := m.denied.Load(); denied != nil {
		return *denied
	}
	c := &transport.Call{Command: "CLIENT", Args: []any{"KILL", "ID", who.id}, Urgent: true}
	if who.addr != "" {
		// After a failover the ID may belong to another server's client.
		c.Args = append(c.Args, "ADDR", who.addr)
	} else if who.noAddr != "" {
		m.noAddr.Do(func() {
			m.cfg.Logger.Warn("redlatch: CLIENT KILL by ID only: after a failover the ID may belong to another client",
				"right", "+client|info", "error", who.noAddr)
		})
	}
	_, err := Do(ctx, m, c)
	var refusal *transport.ServerError
	if !errors.As(err, &refusal) {
		return err // nil for 1 (killed) and 0 (already gone)
	}
	if strings.HasPrefix(refusal.Text, "ERR No such client") {
		return nil
	}
	err = fmt.Errorf("mux: the server rejects CLIENT KILL: %w", err)
	switch refusal.Code() { // other errors, such as LOADING, are temporary
	case "NOPERM":
		m.deny("+client|kill", err)
	case "ERR":
		m.deny("", err)
	}
	return err
}
