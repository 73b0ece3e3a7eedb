// Package codec encodes the names that Redlatch shares with Redisson: owners, and the keys and
// channels of locks. Use it to read locks from Redis without a Redlatch client. For example, this
// lists the waiters of a fair lock:
//
//	waiters, err := redis.Strings(conn.Do("LRANGE", codec.QueueKey("orders"), 0, -1))
//
// The functions take a lock's mapped name: the result of the client's NameMapper, if it has one. The lock itself is a
// hash, and the mapped name is its key. Derived names contain the mapped name in braces, unless it contains an opening
// brace, so that all of them are in one slot of a cluster.
//
// All functions are pure and safe for concurrent use. docs/protocol.md describes the other keys,
// the scripts and the messages.
package codec

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/limits"
)

const (
	uuidLen = 36
	// ownerLen is the length of a UUID, the colon and the longest int64.
	ownerLen = uuidLen + 1 + len("-9223372036854775808")
)

// Owner identifies a holder of a lock: the UUID of a client and the number of an acquisition, which is a
// thread ID in Redisson. Owners are comparable. The zero Owner means no owner.
type Owner struct {
	client uuid.UUID
	n      int64
}

// NewOwner returns the owner with number n for the client with ID id. As in Redisson, n may be zero or
// negative.
func NewOwner(id uuid.UUID, n int64) Owner { return Owner{client: id, n: n} }

// ParseOwner parses the exact result of [Owner.String]: the UUID in 36 lower-case characters, a colon, and
// the number in decimal without a plus sign or leading zeros. It returns redlatch.ErrInvalid for other text,
// such as the field of a writer in a read/write lock.
func ParseOwner(text string) (Owner, error) {
	if len(text) < uuidLen+2 {
		return Owner{}, badOwner(text)
	}
	id, idErr := uuid.Parse(text[:uuidLen])
	n, nErr := strconv.ParseInt(text[uuidLen+1:], 10, 64)
	if idErr != nil || nErr != nil {
		return Owner{}, badOwner(text)
	}
	// The parsers accept other forms, and the colon has not been checked.
	owner := Owner{client: id, n: n}
	var spelt [ownerLen]byte
	if string(owner.appendTo(spelt[:0])) != text {
		return Owner{}, badOwner(text)
	}
	return owner, nil
}

func badOwner(text string) error {
	return fmt.Errorf("%w: invalid owner %s: want lower-case uuid:number", limits.ErrInvalid, limits.Quote(text))
}

// String returns the owner's text in Redis, such as "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57".
func (o Owner) String() string {
	var buf [ownerLen]byte
	return string(o.appendTo(buf[:0]))
}

func (o Owner) appendTo(dst []byte) []byte {
	dst = hex.AppendEncode(dst, o.client[0:4])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[4:6])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[6:8])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[8:10])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[10:16])
	dst = append(dst, ':')
	return strconv.AppendInt(dst, o.n, 10)
}

// Client returns the UUID of the owner's client.
func (o Owner) Client() uuid.UUID { return o.client }

// N returns the owner's number within its client.
func (o Owner) N() int64 { return o.n }

// IsZero reports whether o is the zero Owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// MarshalText returns the text of [Owner.String]; the error is always nil.
func (o Owner) MarshalText() ([]byte, error) {
	return o.appendTo(make([]byte, 0, ownerLen)), nil
}

// UnmarshalText sets o to the result of [ParseOwner]. On an error o is unchanged.
func (o *Owner) UnmarshalText(text []byte) error {
	parsed, err := ParseOwner(string(text))
	if err != nil {
		return err
	}
	*o = parsed
	return nil
}

// LockChannel returns the pub/sub channel on which clients publish "0" when they release the lock. A fair
// lock publishes only to its next waiter, on LockChannel(name) + ":" + the waiter's owner.
func LockChannel(name string) string { return limits.Derived("redisson_lock__channel", name) }

// QueueKey returns the key of a fair lock's queue: a list of owners, with the next one first.
func QueueKey(name string) string { return limits.Derived("redisson_lock_queue", name) }

// TimeoutKey returns the key of the deadlines of a fair lock's waiters: a sorted set of owners, each with
// its deadline in milliseconds since 1970.
func TimeoutKey(name string) string { return limits.Derived("redisson_lock_timeout", name) }
