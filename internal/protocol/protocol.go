// Package protocol defines the keys, channels, fields and messages of locks that docs/protocol.md
// describes, except the names in package codec. It does not perform any I/O or keep any state.
package protocol

import (
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
)

const (
	latchPrefix     = "redisson_unlock_latch"
	tokenPrefix     = "redisson_lock_token"
	rwPrefix        = "redisson_rwlock"
	semaphorePrefix = "redisson_sc"
	countPrefix     = "redisson_countdownlatch__channel__"
)

const (
	// MessageUnlock announces that a lock is free.
	MessageUnlock = "0"
	// MessageWriterLeft announces that the writer of a read/write lock has left.
	MessageWriterLeft = "1"
	// MessageOpened announces that a count-down latch has opened.
	MessageOpened = "0"
	// MessageClosed announces that the count of a count-down latch was set or deleted.
	MessageClosed = "1"
)

// redlatchVersion is the UUID version of Redlatch's client IDs. Redisson uses version 4.
const redlatchVersion = 7

// IsRedlatch reports whether the owner's client uses this library, judging by the version of its UUID. A client that is
// configured with an id of another version looks like a Redisson client.
func IsRedlatch(owner codec.Owner) bool { return owner.Client().Version() == redlatchVersion }

// OwnerChannel returns the channel that notifies one waiter of a fair lock.
func OwnerChannel(name, owner string) string { return codec.LockChannel(name) + ":" + owner }

// LatchKey returns the key that stores the result of one unlock, so that the unlock can be retried. requestID
// consists of 32 lower-case hexadecimal characters and is new for each unlock.
func LatchKey(name, requestID string) string {
	return limits.Derived(latchPrefix, name) + ":" + requestID
}

// TokenKey returns the key of a lock's last fencing token.
func TokenKey(name string) string { return limits.Derived(tokenPrefix, name) }

func braced(name string) string { return limits.Derived("", name)[1:] }

// ReadWriteChannel returns the channel of a read/write lock.
func ReadWriteChannel(name string) string { return limits.Derived(rwPrefix, name) }

// The field of a read/write lock's hash that contains the holders' mode, and the values of this
// field.
const (
	ModeField = "mode"
	ModeRead  = "read"
	ModeWrite = "write"
)

const writerSuffix = ":write"

// WriterField returns the field that contains the writer's hold count. A reader's field is the owner.
func WriterField(owner string) string { return owner + writerSuffix }

// WriterOf returns the owner of a [WriterField], and false for other fields.
func WriterOf(field string) (owner string, isWriter bool) {
	return strings.CutSuffix(field, writerSuffix)
}

// HoldKey returns the key of a reader's k-th hold, counting from 1. Its TTL is the hold's lease.
func HoldKey(name, owner string, k int64) string {
	return braced(name) + ":" + owner + ":rwlock_timeout:" + strconv.FormatInt(k, 10)
}

// SemaphoreChannel returns the channel of a semaphore of either kind.
func SemaphoreChannel(name string) string { return limits.Derived(semaphorePrefix, name) }

// PermitsKey returns the key of the sorted set of a semaphore's acquired permits. Its members are the 16 bytes of each
// id, and its scores are the ends of the leases in milliseconds since 1970.
func PermitsKey(name string) string { return braced(name) + ":timeout" }

// PermitForever is the end of a lease that never ends.
const PermitForever = 922337203685477

// CountDownChannel returns the channel of a count-down latch. Every name is put in braces, so if
// the name itself contains a hash tag, the channel and the key are in different cluster slots.
func CountDownChannel(name string) string { return countPrefix + "{" + name + "}" }
