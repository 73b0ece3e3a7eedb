package listing

import (
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
)

const (
	// modeField is what a read/write lock has besides its holders.
	modeField = "mode"
	// The modes of a read/write lock.
	readMode, writeMode = "read", "write"
	// writeSuffix ends the owner of a write lock.
	writeSuffix = ":write"
	// groupSuffix ends a field of what Redisson's getMultiLock of one group makes.
	groupSuffix = ":lock_count"
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

// Bare returns the owner without what Redisson adds to that of a write lock, and
// whether it was there.
func Bare(owner string) (bare string, writes bool) { return strings.CutSuffix(owner, writeSuffix) }

// ShapeOf returns what a hash with these fields and values, one at least, looks like: a
// lock has one field, an owner with its count, or several and a field "mode". With more,
// these are only some of the fields, and a lock that may have a mode is taken for one that
// has.
func ShapeOf(fields [][2]string, more bool) Shape {
	var s Shape
	writing := false
	for _, f := range fields {
		if f[0] == modeField && (f[1] == readMode || f[1] == writeMode) {
			s.Mode = f[1]
			continue
		}
		owner, writes := Bare(f[0])
		if odd := oddField(owner, f); odd != "" {
			return Shape{Odd: odd}
		}
		writing = writing || writes
		s.Holders = append(s.Holders, Holder{Owner: f[0], Count: f[1]})
	}
	switch {
	case len(s.Holders) == 0:
		return Shape{Odd: `it has a field "mode" and no owner`}
	case s.Mode != "" || more:
		s.Kind = ReadWrite
	case len(s.Holders) > 1:
		return Shape{Odd: `it has several owners, and no field "mode" as a read/write lock has`}
	case writing:
		return Shape{Odd: `it has the owner of a write lock, and no field "mode"`}
	default:
		s.Kind = Plain
	}
	return s
}

// oddField returns what of a field is not as in a lock, "" when nothing is. Values are not
// repeated: they may be secrets of another program.
func oddField(owner string, field [2]string) string {
	if strings.HasSuffix(field[0], groupSuffix) {
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

// recognise returns the lock that a hash's fields look like, nil for other hashes.
// With more, these are only some of the fields.
func recognise(name string, fields [][2]string, more bool) *Lock {
	s := ShapeOf(fields, more)
	if s.Odd != "" {
		return nil
	}
	return &Lock{Name: name, Kind: s.Kind, Mode: s.Mode, Holders: s.Holders, More: more}
}

// Glance looks at a key, with commands that are short however large it is, and returns
// why it is a hash that is no lock, "" when it may be a lock: also when there is no such
// key, when it is of another type, or when the user may not look. It sends HSCAN, and
// HGET for a hash of many owners. An error says that the connection is broken.
func Glance(c redis.Conn, name string) (odd string, err error) {
	replies, err := ask(c, []call{command("HSCAN", name, 0, "COUNT", glance)})
	if err != nil {
		return "", err
	}
	if err := unanswered(replies[0]); err != nil {
		return "", err
	}
	fields, more, ok := fieldsOf(replies[0])
	if !ok || len(fields) == 0 {
		return "", nil
	}
	s := ShapeOf(fields, more)
	if s.Odd != "" || s.Mode != "" || !more {
		return s.Odd, nil
	}
	replies, err = ask(c, []call{command("HGET", name, modeField)})
	if err != nil {
		return "", err
	}
	if _, refused := refusal(replies[0]); refused || isMode(text(replies[0])) {
		return "", nil
	}
	return `it has many owners, and no field "mode" as a read/write lock has`, nil
}

func isMode(text string) bool { return text == readMode || text == writeMode }
