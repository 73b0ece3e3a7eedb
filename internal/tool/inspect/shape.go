package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// NotLock says that a name is that of something else, to people as an error.
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

// NotLockHash returns the error for a hash that is not a lock.
func NotLockHash(name, why string) error {
	return &NotLock{Named: NameOf(name), Fault: FaultShape, Key: name, Type: "hash", Why: why}
}

// CheckIsLock returns an error if the name is that of a hash that is no lock. It is short
// for the server: an inspection reads all of a hash. It ends with ctx.
func CheckIsLock(ctx context.Context, srv *connect.Server, name string) error {
	c, err := srv.Dial(ctx)
	if err != nil {
		return err
	}
	// The connection knows nothing of ctx: closing it ends what is under way.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // only read from
	}()
	odd, err := listing.Glance(c, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return srv.Problem(err)
	case odd != "":
		return NotLockHash(name, odd)
	}
	return nil
}

// WrongType finds out which key holds what it should not, and returns the error.
func WrongType(ctx context.Context, srv *connect.Server, name string) error {
	c, err := srv.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read from
	return WrongTypeOn(c, name, srv.Problem)
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

// ShapeOfInspection says what the lock's hash looks like; the zero Shape when it is free.
func ShapeOfInspection(in *admin.Inspection) listing.Shape {
	if len(in.Holders) == 0 {
		return listing.Shape{}
	}
	fields := make([][2]string, len(in.Holders))
	for i, h := range in.Holders {
		fields[i] = [2]string{h.Text, h.CountText}
	}
	return listing.ShapeOf(fields, false)
}

// HolderOf returns the description of a holder of a lock of a kind.
func HolderOf(h listing.Holder, kind listing.Kind) Holder {
	out := Holder{Owner: h.Owner, Count: Count(h.Count), Client: ClientOf(h.Owner), Label: h.Label}
	if kind == listing.ReadWrite {
		out.Mode = "read"
		if _, writes := listing.Bare(h.Owner); writes {
			out.Mode = "write"
		}
	}
	return out
}

// Holder is a holder of a lock.
type Holder struct {
	// Owner is as it stands in Redis: that of a write lock ends in ":write".
	Owner string `json:"owner"`
	Count Count  `json:"count"`
	Client
	// Mode is what it holds a read/write lock for, "read" or "write", or "permit" for a permit of
	// a semaphore, whose owner is the permit's id.
	Mode string `json:"mode,omitempty"`
	// LeftMillis is what a reader or a permit has left of its own lease, 0 when that is over; nil
	// when it has none or it is not known.
	LeftMillis *int64 `json:"left_ms,omitempty"`
	// Renewed is whether that lease was seen to be renewed, "" if it was not watched.
	Renewed string `json:"renewed,omitempty"`
	// Label is that of the owner's client, empty when it has none.
	Label string `json:"label,omitempty"`
}

// Count is how often the owner has entered, a number unless the field holds
// something else.
type Count string

// MarshalJSON is part of json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(c))
}
