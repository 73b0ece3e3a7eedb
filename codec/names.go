package codec

import (
	"strconv"
	"strings"
)

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
