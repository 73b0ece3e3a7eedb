package rlock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
)

// Inspection is a lock as the server had it at one moment.
type Inspection struct {
	// Name is the lock's name, Kind what kind of lock was asked about: "plain".
	Name, Kind string
	// Holders are those who hold the lock: none when it is free, and one
	// otherwise, unless the key is that of another kind of lock.
	Holders []Holder
	// TTL is how long the lease has left: 0 when the lock is free, codec.NoTTL,
	// which is negative, when the key never expires.
	TTL time.Duration
}

// Holder is who holds a lock.
type Holder struct {
	// Owner is the owner, the zero Owner when Text is not of that form.
	Owner codec.Owner
	// Text is the owner as it stands in Redis.
	Text string
	// Count is how often the owner has entered.
	Count int64
}

// Held reports whether anybody holds the lock.
func (i *Inspection) Held() bool { return len(i.Holders) > 0 }

// Inspect returns who holds the lock, how often, and for how long, all of one
// moment, asked of the master. What it tells may have changed when it returns: it
// is for people and logs. It sends one EVALSHA, which changes nothing.
func (l *Lock) Inspect(ctx context.Context) (*Inspection, error) {
	reply, err := l.ask(ctx, "inspect", l.proto.Inspect)
	if err != nil {
		return nil, err
	}
	left, fields, err := codec.Inspected(reply)
	if err != nil {
		return nil, l.wrap("inspect", codec.Owner{}, err)
	}
	if left == codec.NoKey {
		left = 0
	}
	in := &Inspection{Name: l.name, Kind: l.kind(), TTL: left}
	for _, f := range fields {
		owner, err := codec.ParseOwner(f.Owner)
		if err != nil {
			owner = codec.Owner{} // somebody else's: the text says it all
		}
		in.Holders = append(in.Holders, Holder{Owner: owner, Text: f.Owner, Count: f.Count})
	}
	return in, nil
}
