package mux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// errNoFence is the reason when the server cannot be asked about the call's
// connection, because it is not known what it is called there.
var errNoFence = errors.New("mux: the call's connection is not known on the server")

// Fence makes sure that call, which its caller has abandoned or whose done has
// run, either has run on the server already or never will. Nil means that this is
// so; any other result leaves the doubt as it was. It waits for the server no
// longer than ctx says.
//
// When the call's connection has been given up, it is killed on the server, with
// CLIENT KILL ID; that it was gone already is as good. The present connection is
// not killed, for the sake of the other calls on it: there, the answer to a PING
// behind the call proves that the call is over.
//
// A server that does not permit CLIENT KILL, or does not have it, is not asked
// again.
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
			return fmt.Errorf("mux: the call's connection has not answered: %w", context.Cause(ctx))
		}
	}
	return m.kill(ctx, who)
}

// nameless returns why it is not known what a connection of ours is called on the
// server.
func (m *Mux) nameless() error {
	refusal := m.history.latest().noID
	if refusal == "" {
		return errNoFence
	}
	err := fmt.Errorf("%w: %w", errNoFence, &transport.ServerError{Text: refusal})
	m.deny("+client|id", err)
	return err
}

// deny takes in that calls in doubt cannot be fenced, which is logged once. The
// right is the one that the user lacks, "" if the server lacks the command.
func (m *Mux) deny(right string, err error) {
	if m.denied.Swap(&err) != nil {
		return
	}
	m.cfg.Logger.Warn("redlatch: calls in doubt cannot be fenced: they are asked about for the length of a lease",
		"right", right, "error", err)
}

// passed sends PING and reports whether the connection of this name answered it:
// the server works through the commands of a connection in their order.
func (m *Mux) passed(ctx context.Context, name int64) bool {
	ping := &transport.Call{Command: "PING"}
	_, err := Do(ctx, m, ping)
	var refusal *transport.ServerError
	answered := err == nil || errors.As(err, &refusal)
	return answered && ping.Conn() == name
}

// kill ends a former connection on the server.
func (m *Mux) kill(ctx context.Context, who identity) error {
	if denied := m.denied.Load(); denied != nil {
		return *denied
	}
	c := &transport.Call{Command: "CLIENT", Args: []any{"KILL", "ID", who.id}, Urgent: true}
	if who.addr != "" {
		// After a failover this may be another server, on which the id is
		// another client's. The address is not.
		c.Args = append(c.Args, "ADDR", who.addr)
	} else if who.noAddr != "" {
		m.noAddr.Do(func() {
			m.cfg.Logger.Warn("redlatch: connections are killed by their id alone: after a failover that may be another client's",
				"right", "+client|info", "error", who.noAddr)
		})
	}
	_, err := Do(ctx, m, c)
	var refusal *transport.ServerError
	if !errors.As(err, &refusal) {
		return err // nil with 1, killed, or 0, gone already
	}
	if strings.HasPrefix(refusal.Text, "ERR No such client") {
		return nil
	}
	err = fmt.Errorf("mux: the server does not kill connections for us: %w", err)
	switch refusal.Code() { // others, such as LOADING, pass
	case "NOPERM":
		m.deny("+client|kill", err)
	case "ERR":
		m.deny("", err)
	}
	return err
}
