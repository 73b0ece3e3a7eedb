package oracle

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"

	"github.com/gomodule/redigo/redis"
)

// Moving is a cluster of two masters in which a slot is being migrated. It is not safe for concurrent use.
type Moving struct{ nodes []*node }

type node struct {
	side
	id, host, port string
}

var tryAgain any = Failure("TRYAGAIN")

// NewMoving returns a Moving for two masters, given by their addresses and connections that are not used elsewhere.
func NewMoving(masters map[string]redis.Conn) (*Moving, error) {
	m := &Moving{}
	for addr, conn := range masters {
		n := &node{side: side{conn: conn}}
		var err1, err2 error
		n.id, err1 = redis.String(conn.Do("CLUSTER", "MYID"))
		n.host, n.port, err2 = net.SplitHostPort(addr)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		m.nodes = append(m.nodes, n)
	}
	return m, nil
}

// Ran is a script's reply and the state afterwards.
type Ran struct {
	Reply any
	After State
}

// Refused reports whether the script did not run and must be retried.
func (r Ran) Refused() bool { return r.Reply == tryAgain }

// Local returns the vector's initial keys that are in its slot. ok is false if the script creates keys in another slot.
func (m *Moving) Local(ours Ours, v Vector) (before State, ok bool, err error) {
	home, err := m.slot(ours.request(v.Step).keys[0])
	if err != nil {
		return nil, false, err
	}
	before, ok = State{}, true
	for _, name := range keysOf(v.Before, v.After) {
		slot, err := m.slot(name)
		if err != nil {
			return nil, false, err
		}
		e, there := v.Before[name]
		switch {
		case there && slot == home:
			before[name] = e
		case !there && slot != home:
			ok = false
		}
	}
	return before, ok, nil
}

func (m *Moving) slot(key string) (int, error) {
	return redis.Int(m.nodes[0].conn.Do("CLUSTER", "KEYSLOT", key))
}

// Play runs our script for a step.
func (m *Moving) Play(ours Ours, s Step, before State) (ran Ran, err error) {
	r := ours.request(s)
	from, _, err := m.become(r.keys[0], before)
	if err != nil {
		return Ran{}, err
	}
	at, err := from.now()
	if err != nil {
		return Ran{}, err
	}
	if ran.Reply, err = from.run(r); err != nil {
		return Ran{}, err
	}
	ran.After, err = from.stateSince(at)
	return ran, err
}

// PlayMoving is like Play, but first migrates the moved keys. It cancels the migration afterwards.
func (m *Moving) PlayMoving(ours Ours, s Step, before State, moved []string) (ran Ran, err error) {
	r := ours.request(s)
	from, to, err := m.become(r.keys[0], before)
	if err != nil {
		return Ran{}, err
	}
	slot, err1 := m.slot(r.keys[0])
	at, err2 := from.now()
	if err := errors.Join(err1, err2); err != nil {
		return Ran{}, err
	}
	if err := from.begin(slot, to, moved); err != nil {
		return Ran{}, err
	}
	defer func() { err = errors.Join(err, from.stay(slot), to.stay(slot)) }()
	moving := &node{side: side{conn: asking{to.conn}}}
	if ran.Reply, err = from.run(r); err == nil && ran.Reply == any(Failure("ASK")) {
		ran.Reply, err = moving.run(r)
	}
	if err != nil {
		return Ran{}, err
	}
	var more State
	ran.After, err1 = from.stateSince(at)
	more, err2 = moving.stateSince(at)
	for name, e := range more {
		if _, twice := ran.After[name]; twice {
			err2 = errors.Join(err2, fmt.Errorf("oracle: both nodes have %q", name))
		}
		ran.After[name] = e
	}
	return ran, errors.Join(err1, err2)
}

// asking sends ASKING before each command, so that the importing node serves it.
type asking struct{ redis.Conn }

func (a asking) Do(command string, args ...any) (any, error) {
	if err := a.Send("ASKING"); err != nil {
		return nil, err
	}
	return a.Conn.Do(command, args...)
}

func (n *node) stateSince(at int64) (State, error) {
	all, err := n.state()
	return all.after(-at), err
}

func (m *Moving) become(key string, all State) (serves, other *node, err error) {
	serves, other = m.nodes[0], m.nodes[1]
	_, err = serves.conn.Do("EXISTS", key)
	var redirected redis.Error
	if errors.As(err, &redirected) {
		serves, other, err = other, serves, nil
	}
	at, err2 := serves.now()
	return serves, other, errors.Join(err, err2, other.make(nil), serves.become(all.after(at)))
}

func (n *node) begin(slot int, to *node, keys []string) error {
	_, err1 := to.conn.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", n.id)
	_, err2 := n.conn.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
	if err := errors.Join(err1, err2); err != nil || len(keys) == 0 {
		return err
	}
	args := redis.Args{to.host, to.port, "", 0, lineTimeout.Milliseconds(), "KEYS"}
	_, err := n.conn.Do("MIGRATE", args.AddFlat(keys)...)
	return err
}

func (n *node) stay(slot int) error {
	_, err := n.conn.Do("CLUSTER", "SETSLOT", slot, "STABLE")
	return err
}

// Numbers below leastTime are not times.
const slack, leastTime = 2000, 1000

// Same returns an error if two runs differ in more than their times.
func (r Ran) Same(other Ran) error {
	if !alike(r.Reply, other.Reply) {
		return fmt.Errorf("the reply is %v, not %v", other.Reply, r.Reply)
	}
	for _, name := range keysOf(r.After, other.After) {
		a, inA := r.After[name]
		b, inB := other.After[name]
		if inA != inB || !alike(a.Value, b.Value) || !alike(a.Expires, b.Expires) {
			return fmt.Errorf("%q is %v, not %v", name, b, a)
		}
	}
	return nil
}

func alike(a, b any) bool {
	switch a := a.(type) {
	case int64:
		b, ok := b.(int64)
		return ok && (a == b || min(a, b) >= leastTime && max(a, b)-min(a, b) < slack)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, alike)
	case map[string]float64:
		b, ok := b.(map[string]float64)
		return ok && maps.EqualFunc(a, b, func(x, y float64) bool { return alike(int64(x), int64(y)) })
	}
	return reflect.DeepEqual(a, b)
}
