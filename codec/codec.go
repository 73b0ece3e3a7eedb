// Package codec knows every byte that Redlatch shares with Redisson: how owners
// are spelt, which keys and channels belong to a lock, and what messages say. It is
// for programs that look at locks without locking. It is pure: no Redis, no clock, no
// goroutine, and every function is safe for concurrent use.
//
// # One lock, by its names
//
// Everything starts from the mapped name: a redlatch.NameMapper, where one is set, is
// applied to the caller's name once, and the lock's key and all that is derived
// from it come from the result. For a lock named orders:
//
//	orders                                   hash: owner -> count; TTL = lease
//	redisson_lock__channel:{orders}          channel: "0" when it becomes free
//	redisson_lock__channel:{orders}:OWNER    channel: a fair lock calls this waiter
//	redisson_lock_queue:{orders}             list: fair waiters, first in front
//	redisson_lock_timeout:{orders}           sorted set: when a waiter counts as dead
//	redisson_unlock_latch:{orders}:REQUEST   string: outcome of a repeated unlock
//	redisson_lock_token:{orders}             string: the last fencing token
//
// A read/write lock has, in place of the first two:
//
//	orders                                   hash: mode, owner -> count, owner:write -> count
//	{orders}:OWNER:rwlock_timeout:N          string: one hold of a reader; TTL = its lease
//	redisson_rwlock:{orders}                 channel: "0" and "1", when others may try
//
// A semaphore has these, the second only where its permits have ids:
//
//	orders                                   string: how many permits are available
//	{orders}:timeout                         sorted set: id -> when its permit's lease ends
//	redisson_sc:{orders}                     channel: a number, when others may try
//
// The braces keep all of them in one hash slot of a cluster. A name that contains
// an opening brace anywhere gets none added; the names of this kind whose keys come
// apart in a cluster are refused there.
//
// # One hold, by its owner
//
// The hash has one field per owner, a UUID and a number joined by a colon, and
// the field's value counts how often that owner has entered. No client parses
// the owners of others: two owners are the same if their bytes are. [Owner] is
// the shape that Redlatch writes and Redisson's plain locks write too; a field
// of another shape, such as a write lock's, has another meaning and stays a
// string.
//
// # Words
//
//	here                    in Redisson
//	owner                   lock name, holder: getLockName(threadId)
//	Owner.Client            RedissonClient.getId(), the instance id
//	Owner.N                 threadId
//	name, mapped name       getName(), getRawName()
//	lease                   leaseTime; without one, lockWatchdogTimeout
//	wait (fair locks)       threadWaitTime, fairLockWaitTimeout
//	lock channel            getChannelName()
//	queue, timeouts         threadsQueueName, timeoutSetName
//	latch                   unlock latch: getUnlockLatchName(requestId)
//	request id              the id generated for each unlock call
//	"0" message             UNLOCK_MESSAGE
//	count                   getHoldCount()
package codec

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/limits"
)

const (
	uuidLen = 36
	// ownerLen fits a UUID, the colon and the longest int64.
	ownerLen = uuidLen + 1 + len("-9223372036854775808")
)

// Owner identifies a holder of a lock: a client, by its UUID, and a number that
// the client gave to one acquisition (in Redisson: a thread id). Two owners with
// equal text are the same owner to Redis. Owner is an immutable value; it can be
// compared with == and used as a map key. The zero Owner stands for none.
type Owner struct {
	client uuid.UUID
	n      int64
}

// NewOwner returns the owner with number n of client id. Any n is allowed, also
// zero and negative ones, as it is in Redisson.
func NewOwner(id uuid.UUID, n int64) Owner { return Owner{client: id, n: n} }

// ParseOwner reads what [Owner.String] writes and nothing else: the UUID in 36
// lower-case characters, a colon, and the number in decimal without a plus sign
// or leading zeros. Hence an accepted text equals the String of the result, byte
// for byte. Other texts give an error that wraps redlatch.ErrInvalid.
func ParseOwner(text string) (Owner, error) {
	if len(text) < uuidLen+2 {
		return Owner{}, badOwner(text)
	}
	id, idErr := uuid.Parse(text[:uuidLen])
	n, nErr := strconv.ParseInt(text[uuidLen+1:], 10, 64)
	if idErr != nil || nErr != nil {
		return Owner{}, badOwner(text)
	}
	// The parsers accept more spellings than one, and the colon is not checked
	// yet.
	owner := Owner{client: id, n: n}
	var spelt [ownerLen]byte
	if string(owner.appendTo(spelt[:0])) != text {
		return Owner{}, badOwner(text)
	}
	return owner, nil
}

func badOwner(text string) error {
	return fmt.Errorf("%w: an owner is uuid:number in lower case, not %s", limits.ErrInvalid, limits.Quote(text))
}

// String returns the owner as it stands in Redis, such as
// "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57". It costs one allocation.
func (o Owner) String() string {
	var buf [ownerLen]byte
	return string(o.appendTo(buf[:0]))
}

// appendTo appends the text of [Owner.String] to dst and returns the result.
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

// Client returns the UUID of the client that the owner belongs to.
func (o Owner) Client() uuid.UUID { return o.client }

// N returns the owner's number within its client.
func (o Owner) N() int64 { return o.n }

// redlatchVersion is the UUID version of the ids that clients of this library give
// themselves; Redisson's are of version 4.
const redlatchVersion = 7

// IsRedlatch reports whether the owner is one of a client of this library, which its
// UUID tells: of version 7, where Redisson's are of version 4. A client that was
// given an id of another version is taken for one of Redisson's.
func (o Owner) IsRedlatch() bool { return o.client.Version() == redlatchVersion }

// IsZero reports whether o is the zero Owner, which stands for no owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// MarshalText returns the text of [Owner.String]; the error is always nil. With
// [Owner.UnmarshalText] it lets owners travel in JSON and other formats.
func (o Owner) MarshalText() ([]byte, error) {
	return o.appendTo(make([]byte, 0, ownerLen)), nil
}

// UnmarshalText sets o to what [ParseOwner] makes of text. On an error, which
// wraps redlatch.ErrInvalid, o stays as it was.
func (o *Owner) UnmarshalText(text []byte) error {
	parsed, err := ParseOwner(string(text))
	if err != nil {
		return err
	}
	*o = parsed
	return nil
}

// The prefixes of the names that Redisson derives from a lock's name.
const (
	channelPrefix = "redisson_lock__channel"
	queuePrefix   = "redisson_lock_queue"
	timeoutPrefix = "redisson_lock_timeout"
	latchPrefix   = "redisson_unlock_latch"
	tokenPrefix   = "redisson_lock_token"
	rwPrefix      = "redisson_rwlock"

	semaphorePrefix = "redisson_sc"

	countPrefix = "redisson_countdownlatch__channel__"
)

// LockChannel returns the channel on which waiters of the lock with this mapped
// name learn that it has become free.
func LockChannel(name string) string { return prefixed(channelPrefix, name) }

// OwnerChannel returns the channel on which a fair lock calls the waiter owner,
// given as it stands in the lock's queue: any text, not only that of an [Owner].
func OwnerChannel(name, owner string) string {
	return suffixed(LockChannel(name), owner)
}

// QueueKey returns the key of a fair lock's list of waiters.
func QueueKey(name string) string { return prefixed(queuePrefix, name) }

// TimeoutKey returns the key of the sorted set that holds, for each waiter of a
// fair lock, the time from which it counts as dead, in milliseconds since 1970.
func TimeoutKey(name string) string { return prefixed(timeoutPrefix, name) }

// TokenKey returns the key of the counter of a lock with fencing tokens: the last token that
// was given.
func TokenKey(name string) string { return prefixed(tokenPrefix, name) }

// ReadWriteChannel returns the channel on which readers and writers of the read/write lock with
// this mapped name learn that they may try.
func ReadWriteChannel(name string) string { return prefixed(rwPrefix, name) }

// The field of a read/write lock's hash that says which role has the lock, and its values.
const (
	ModeField = "mode"
	ModeRead  = "read"
	ModeWrite = "write"
)

// writerSuffix tells the writer's field from those of readers.
const writerSuffix = ":write"

// WriterField returns the field of a read/write lock's hash that counts the holds of owner as
// the writer. That of a reader is the owner alone.
func WriterField(owner string) string { return owner + writerSuffix }

// WriterOf returns the owner of a writer's field, as [WriterField] makes it, and false for
// other fields.
func WriterOf(field string) (owner string, isWriter bool) {
	return strings.CutSuffix(field, writerSuffix)
}

// HoldKey returns the key that keeps the k-th hold of a reader of a read/write lock alive,
// counted from 1. Owner is given as it stands in the lock's hash.
func HoldKey(name, owner string, k int64) string {
	braced := prefixed("", name)[1:]
	return suffixed(suffixed(braced, owner), "rwlock_timeout:"+strconv.FormatInt(k, 10))
}

// SemaphoreChannel returns the channel on which waiters of the semaphore with this mapped name
// learn that they may try, be its permits counted only or have ids.
func SemaphoreChannel(name string) string { return prefixed(semaphorePrefix, name) }

// PermitsKey returns the key of the sorted set that holds, for each permit of the semaphore
// with this mapped name that is taken, when its lease ends, in milliseconds since 1970. Its
// members are the 16 bytes of the permits' ids.
func PermitsKey(name string) string { return suffixed(prefixed("", name)[1:], "timeout") }

// PermitForever is the end of a permit's lease that never ends.
const PermitForever = 922337203685477

// CountDownChannel returns the channel on which the waiters of the count-down latch with this
// mapped name learn that it has opened or closed. The braces are added to any name: one with a
// hash tag has a channel in another slot of a cluster.
func CountDownChannel(name string) string { return countPrefix + "{" + name + "}" }

// LatchKey returns the key that keeps the outcome of one unlock, so that the
// same unlock sent again gets the same answer. Redisson's requestID is 32
// lower-case hexadecimal characters, new for each unlock.
func LatchKey(name, requestID string) string {
	return suffixed(prefixed(latchPrefix, name), requestID)
}

// prefixed puts a prefix before a name to which the brace rule is applied: an opening brace anywhere in the name, be it
// part of a hash tag or not, means that none are added.
func prefixed(prefix, name string) string {
	if strings.IndexByte(name, '{') >= 0 {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

func suffixed(name, suffix string) string { return name + ":" + suffix }

const (
	// MessageUnlock is the message that a lock has become free.
	MessageUnlock = "0"
	// MessageWriterLeft is the message that the writer of a read/write lock has left it:
	// readers and writers may try.
	MessageWriterLeft = "1"
	// MessageOpened is the message that a count-down latch has opened.
	MessageOpened = "0"
	// MessageClosed is the message that the count of a count-down latch was set, or deleted.
	MessageClosed = "1"
)

// Slot returns the hash slot of a key or shard channel in a Redis Cluster, 0 to 16383. It sends
// nothing, and is safe for concurrent use.
//
// Deprecated: it is transport.HashSlot under its former name, for adapters that are older than
// the core.
func Slot(key string) int { return limits.HashSlot(key) }
