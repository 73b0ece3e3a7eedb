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
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Shape is what a hash looks like.
type Shape struct {
	// Kind is what kind of lock it looks like, Plain for one that may be fair, "" when
	// it is no lock.
	Kind Kind
	// Mode is a read/write lock's, "read" or "write".
	Mode string
	// Holders are the holders of the lock, in the order of the fields.
	Holders []Holder
	// Odd is why it is no lock, as a clause that follows its name.
	Odd string
}

func isMode(text string) bool { return text == codec.ModeRead || text == codec.ModeWrite }

// ShapeOf returns what a hash with these fields and values, one at least, looks like: a
// lock has one field, an owner with its count, or several and a field "mode". With more,
// these are only some of the fields, and a lock that may have a mode is taken for one that
// has.
func ShapeOf(fields [][2]string, more bool) Shape {
	s := Shape{Kind: Plain}
	isModeField := func(f [2]string) bool { return f[0] == codec.ModeField && isMode(f[1]) }
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
		owner, writes := codec.WriterOf(f[0])
		if odd := oddField(owner, f); odd != "" {
			return Shape{Odd: odd}
		}
		writing = writing || writes
		s.Holders = append(s.Holders, holderOf(f[0], f[1], s.Kind == ReadWrite))
	}
	switch {
	case len(s.Holders) == 0:
		return Shape{Odd: `it has a field "mode" and no owner`}
	case s.Kind == ReadWrite:
	case len(s.Holders) > 1:
		return Shape{Odd: `it has several owners, and no field "mode" as a read/write lock has`}
	case writing:
		return Shape{Odd: `it has the owner of a write lock, and no field "mode"`}
	}
	return s
}

// oddField returns what of a field is not as in a lock, "" when nothing is. Values are not
// repeated: they may be secrets of another program.
func oddField(owner string, field [2]string) string {
	if strings.HasSuffix(field[0], ":lock_count") {
		return "it looks like the group of a multi-lock (Redisson's getMultiLock of one group), of which nothing is known here"
	}
	if _, err := redlatch.ParseOwner(owner); err != nil {
		return "its field " + limits.Quote(field[0]) + " is no owner"
	}
	if n, err := strconv.ParseInt(field[1], 10, 64); err != nil || n <= 0 {
		return "what it has for " + field[0] + " is no count"
	}
	return ""
}

// Glance looks at a key, with commands that are short however large it is. It returns a *NotLock
// for a hash that is no lock, nil when it may be a lock: also when there is no such key, when it is
// of another type, or when the user may not look. It sends HSCAN, and HGET for a hash of many
// owners. Another error says that the connection is broken.
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
	replies, err = ask(c, []call{command("HGET", name, codec.ModeField)})
	if err != nil {
		return err
	}
	if _, refused := refusal(replies[0]); refused || isMode(text(replies[0])) {
		return nil
	}
	return notLockHash(name, `it has many owners, and no field "mode" as a read/write lock has`)
}

// NotLock is the error for a name that is not a lock's. Its JSON is what commands print.
type NotLock struct {
	// Named is the name that was asked for.
	Named
	// Fault is what is wrong, one of the constants.
	Fault string `json:"error"`
	// Key is the key that is not as a lock has it, Type what it holds.
	Key  string `json:"key"`
	Type string `json:"type"`
	// Why is why a lock does not look like that.
	Why string `json:"why"`
}

// What is wrong with a name.
const (
	FaultShape = "no_lock"    // a hash of something else
	FaultType  = "wrong_type" // a key of another type
)

// Error says what the key is.
func (n *NotLock) Error() string {
	if n.Fault == FaultShape {
		return fmt.Sprintf("%q is a hash, but no lock: %s", n.Name, n.Why)
	}
	return fmt.Sprintf("the key %q holds a %s, and %s: something else uses this name", n.Key, n.Type, n.Why)
}

func notLockHash(name, why string) error {
	return &NotLock{Named: NameOf(name), Fault: FaultShape, Key: name, Type: "hash", Why: why}
}

// CheckIsLock is Glance on a connection of its own. It is short for the server: an inspection reads
// all of a hash. It ends with ctx.
func CheckIsLock(ctx context.Context, srv *connect.Server, name string) error {
	return connect.Use(ctx, srv.Dial, func(c redis.Conn) error {
		err := Glance(c, name)
		if other := (*NotLock)(nil); err == nil || errors.As(err, &other) {
			return err
		}
		return srv.Problem(err)
	})
}

// WrongType finds out which key holds what it should not, and returns the error.
func WrongType(ctx context.Context, srv *connect.Server, name string) error {
	return connect.Use(ctx, srv.Dial, func(c redis.Conn) error { return WrongTypeOn(c, name, srv.Problem) })
}

// WrongTypeOn is WrongType on a connection. Errors of the connection go through problem.
func WrongTypeOn(c redis.Conn, name string, problem func(error) error) error {
	for _, key := range []struct{ name, kind, what string }{
		{name, "hash", "a lock is a hash"},
		{codec.QueueKey(name), "list", "the queue of a fair lock is a list"},
		{codec.TimeoutKey(name), "zset", "the deadlines of a fair lock are a zset"},
		{codec.TokenKey(name), "string", "the token counter of a fenced lock is a string"},
	} {
		kind, err := redis.String(c.Do("TYPE", key.name))
		switch {
		case connect.Denied(err):
			return fmt.Errorf("the key %q, or one of those of its queue, holds something that is no lock: something else uses "+
				"this name. This user may not ask what it is (+type)", name)
		case err != nil:
			return problem(err)
		case kind != "none" && kind != key.kind:
			return &NotLock{Named: NameOf(name), Fault: FaultType, Key: key.name, Type: kind, Why: key.what}
		}
	}
	return fmt.Errorf("%w: %q", redlatch.ErrWrongType, name) // it is right again by now
}
