package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/connect"
	"github.com/redlatch/redlatch/internal/listing"
	"github.com/redlatch/redlatch/rlock"
)

// noLock says that a name is that of something else, to people as an error.
type noLock struct {
	Name string `json:"name"`
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
	faultShape = "no_lock"    // a hash of something else
	faultType  = "wrong_type" // a key of another type
)

func (n *noLock) Error() string {
	if n.Fault == faultShape {
		return fmt.Sprintf("%q is a hash, but no lock: %s", n.Name, n.Why)
	}
	return fmt.Sprintf("the key %q holds a %s, and %s: something else uses this name", n.Key, n.Type, n.Why)
}

// hashOnly is a hash that is no lock.
func hashOnly(name, why string) error {
	return &noLock{Name: name, Fault: faultShape, Key: name, Type: "hash", Why: why}
}

// glance returns an error if the name is that of a hash that is no lock. It is short
// for the server: an inspection reads all of a hash.
func glance(ctx context.Context, srv *connect.Server, name string) error {
	c, err := srv.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read from
	odd, err := listing.Glance(c, name)
	switch {
	case err != nil:
		return srv.Problem(err)
	case odd != "":
		return hashOnly(name, odd)
	}
	return nil
}

// wrongType finds out which key holds what it should not.
func wrongType(ctx context.Context, srv *connect.Server, name string) error {
	c, err := srv.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read from
	for _, key := range []struct{ name, kind, what string }{
		{name, "hash", "a lock is a hash"},
		{codec.QueueKey(name), "list", "the queue of a fair lock is a list"},
		{codec.TimeoutKey(name), "zset", "the deadlines of a fair lock are a zset"},
	} {
		kind, err := redis.String(c.Do("TYPE", key.name))
		switch {
		case connect.Denied(err):
			return fmt.Errorf("the key %q, or one of those of its queue, holds something that is no lock: something else uses "+
				"this name. This user may not ask what it is (+type)", name)
		case err != nil:
			return srv.Problem(err)
		case kind != "none" && kind != key.kind:
			return &noLock{Name: name, Fault: faultType, Key: key.name, Type: kind, Why: key.what}
		}
	}
	return fmt.Errorf("%w: %q", redlatch.ErrWrongType, name) // it is right again by now
}

// shapeOf says what the lock's hash looks like; the zero Shape when it is free.
func shapeOf(in *rlock.Inspection) listing.Shape {
	if !in.Held() {
		return listing.Shape{}
	}
	fields := make([][2]string, len(in.Holders))
	for i, h := range in.Holders {
		fields[i] = [2]string{h.Text, h.CountText}
	}
	return listing.ShapeOf(fields, false)
}

// holderOf is a holder of a lock of a kind.
func holderOf(h listing.Holder, kind listing.Kind) holder {
	out := holder{Owner: h.Owner, Count: count(h.Count), client: clientOf(h.Owner), Label: h.Label}
	if kind == listing.ReadWrite {
		out.Mode = "read"
		if _, writes := listing.Bare(h.Owner); writes {
			out.Mode = "write"
		}
	}
	return out
}

// holder is who holds a lock.
type holder struct {
	// Owner is as it stands in Redis: that of a write lock ends in ":write".
	Owner string `json:"owner"`
	Count count  `json:"count"`
	client
	// Mode is what it holds a read/write lock for, "read" or "write".
	Mode string `json:"mode,omitempty"`
	// LeftMillis is what one who reads has left of its own lease, 0 when that is over;
	// nil when it has none or it is not known.
	LeftMillis *int64 `json:"left_ms,omitempty"`
	// Label is that of the owner's client, empty when it has none.
	Label string `json:"label,omitempty"`
}

// count is how often the owner has entered, a number unless the field holds
// something else.
type count string

// MarshalJSON is part of json.Marshaler.
func (c count) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(c))
}
