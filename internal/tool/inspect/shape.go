package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Shape is the kind of lock that a hash looks like.
type Shape struct {
	// Kind is Plain for any lock that may be fair, or "" if the hash is not a lock.
	Kind    Kind
	Mode    string
	Holders []Holder
	// Odd is the reason why the hash is not a lock, as a clause.
	Odd string
}

func isMode(text string) bool { return text == protocol.ModeRead || text == protocol.ModeWrite }

// ShapeOf returns the shape of a hash with at least one field. If more is set, the hash has other fields, which may
// include a mode, so it counts as a read/write lock.
func ShapeOf(fields [][2]string, more bool) Shape {
	s := Shape{Kind: Plain}
	isModeField := func(f [2]string) bool { return f[0] == protocol.ModeField && isMode(f[1]) }
	if i := slices.IndexFunc(fields, isModeField); i >= 0 {
		s.Mode = fields[i][1]
	}
	if s.Mode != "" || more {
		s.Kind = ReadWrite
	}
	writing := false
	for _, f := range fields {
		if isModeField(f) {
			continue
		}
		owner, writes := protocol.WriterOf(f[0])
		if odd := oddField(owner, f); odd != "" {
			return Shape{Odd: odd}
		}
		writing = writing || writes
		s.Holders = append(s.Holders, holderOf(f[0], f[1], s.Kind == ReadWrite))
	}
	switch {
	case len(s.Holders) == 0:
		return Shape{Odd: `it has a field "mode" but no owner`}
	case s.Kind == ReadWrite:
	case len(s.Holders) > 1:
		return Shape{Odd: `it has several owners but no field "mode", as a read/write lock would`}
	case writing:
		return Shape{Odd: `it has the owner of a write lock but no field "mode"`}
	}
	return s
}

// oddField returns why a field does not belong to a lock, without its value, which may be secret.
func oddField(owner string, field [2]string) string {
	if strings.HasSuffix(field[0], ":lock_count") {
		return "it looks like a multi-lock group (Redisson's getMultiLock of one group), which Redlatch does not know"
	}
	if _, err := codec.ParseOwner(owner); err != nil {
		return "its field " + limits.Quote(field[0]) + " is not an owner"
	}
	if n, err := strconv.ParseInt(field[1], 10, 64); err != nil || n <= 0 {
		return "its value of " + field[0] + " is not a count"
	}
	return ""
}

// Glance checks a key with commands that are short regardless of its size. It returns a *NotLock for a hash that is
// not a lock, and nil for other types and unreadable keys. Other errors mean a broken connection.
func Glance(c redis.Conn, name string) error {
	replies, err := ask(c, []call{command("HSCAN", name, 0, "COUNT", glance)})
	if err == nil {
		err = unanswered(replies[0])
	}
	if err != nil {
		return err
	}
	fields, more, ok := fieldsOf(replies[0])
	if !ok || len(fields) == 0 {
		return nil
	}
	s := ShapeOf(fields, more)
	switch {
	case s.Odd != "":
		return notLockHash(name, s.Odd)
	case s.Mode != "" || !more:
		return nil
	}
	replies, err = ask(c, []call{command("HGET", name, protocol.ModeField)})
	if err != nil {
		return err
	}
	if _, refused := refusal(replies[0]); refused || isMode(text(replies[0])) {
		return nil
	}
	return notLockHash(name, `it has many owners but no field "mode", as a read/write lock would`)
}

// NotLock is the error for a name that is not a lock.
type NotLock struct {
	Named
	Fault string `json:"error"`
	Key   string `json:"key"`
	Type  string `json:"type"`
	Why   string `json:"why"`
}

// Values of NotLock.Fault.
const (
	FaultShape = "no_lock" // a hash that is not a lock
	FaultType  = "wrong_type"
)

// Error implements error.
func (n *NotLock) Error() string {
	if n.Fault == FaultShape {
		return fmt.Sprintf("%q is a hash but not a lock: %s", n.Name, n.Why)
	}
	return fmt.Sprintf("the key %q holds a %s, and %s: another program uses this name", n.Key, n.Type, n.Why)
}

func notLockHash(name, why string) error {
	return &NotLock{Named: NameOf(name), Fault: FaultShape, Key: name, Type: "hash", Why: why}
}

// CheckIsLock calls Glance on a new connection. It should precede a call of Read, which reads the whole hash.
func CheckIsLock(ctx context.Context, srv *connect.Server, name string) error {
	return connect.Use(ctx, srv.Dial, func(c redis.Conn) error {
		err := Glance(c, name)
		if other := (*NotLock)(nil); err == nil || errors.As(err, &other) {
			return err
		}
		return srv.Problem(err)
	})
}

// WrongType returns an error that names the key with the wrong type.
func WrongType(ctx context.Context, srv *connect.Server, name string) error {
	return connect.Use(ctx, srv.Dial, func(c redis.Conn) error { return WrongTypeOn(c, name, srv.Problem) })
}

// WrongTypeOn is like WrongType, but uses c. problem explains errors returned by c.
func WrongTypeOn(c redis.Conn, name string, problem func(error) error) error {
	for _, key := range []struct{ name, kind, what string }{
		{name, "hash", "a lock is a hash"},
		{codec.QueueKey(name), "list", "the queue of a fair lock is a list"},
		{codec.TimeoutKey(name), "zset", "the deadlines of a fair lock are a zset"},
		{protocol.TokenKey(name), "string", "the token counter of a fenced lock is a string"},
	} {
		kind, err := redis.String(c.Do("TYPE", key.name))
		switch {
		case connect.Denied(err):
			return fmt.Errorf("the key %q, or a key of its queue, is not a Redisson lock: another program uses "+
				"this name. This user may not query the key's type (+type)", name)
		case err != nil:
			return problem(err)
		case kind != "none" && kind != key.kind:
			return &NotLock{Named: NameOf(name), Fault: FaultType, Key: key.name, Type: kind, Why: key.what}
		}
	}
	return fmt.Errorf("%w: %q", redlatch.ErrWrongType, name)
}
