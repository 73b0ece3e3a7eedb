// Package codec defines the names and texts that Redlatch shares with Redisson: owners, and the keys and
// channels of a lock. It is for programs that inspect locks without locking. It has no
// I/O, and every function is safe for concurrent use.
//
// # Names
//
// All names derive from the mapped name, the result of the redlatch.NameMapper, if one is set. For a lock
// named orders:
//
//	orders                                   hash: owner -> count; TTL = lease
//	redisson_lock__channel:{orders}          channel: "0" when it becomes free
//	redisson_lock__channel:{orders}:OWNER    channel: a fair lock calls this waiter
//	redisson_lock_queue:{orders}             list: fair waiters, first in front
//	redisson_lock_timeout:{orders}           sorted set: waiter -> deadline
//	redisson_unlock_latch:{orders}:REQUEST   string: result of an unlock, for retries
//	redisson_lock_token:{orders}             string: the last fencing token
//
// A read/write lock has, instead of the first two:
//
//	orders                                   hash: mode, owner -> count, owner:write -> count
//	{orders}:OWNER:rwlock_timeout:N          string: one hold of a reader; TTL = its lease
//	redisson_rwlock:{orders}                 channel: "0" and "1", when others may try
//
// A semaphore has these, the second only if its permits have ids:
//
//	orders                                   string: the number of available permits
//	{orders}:timeout                         sorted set: id -> end of its permit's lease
//	redisson_sc:{orders}                     channel: a number, when others may try
//
// The braces keep all of them in one hash slot of a cluster. A name with an opening brace gets no others;
// if its keys are in different slots then, a cluster rejects it.
//
// # Owners
//
// The hash has one field per owner, a UUID and a number joined by a colon; its value is the owner's hold
// count. Two owners are the same if their bytes are. [Owner] is the form that Redlatch and Redisson's plain
// locks write; fields of other forms, such as a write lock's, stay strings.
//
// # Words
//
//	Redlatch                Redisson
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

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/limits"
)

const (
	uuidLen = 36
	// ownerLen fits a UUID, the colon and the longest int64.
	ownerLen = uuidLen + 1 + len("-9223372036854775808")
)

// Owner identifies a holder of a lock: a client's UUID, and a number that the client gave to one
// acquisition (in Redisson, a thread id). It is comparable; the zero Owner means no owner.
type Owner struct {
	client uuid.UUID
	n      int64
}

// NewOwner returns the owner with number n of client id. As in Redisson, n may be zero or negative.
func NewOwner(id uuid.UUID, n int64) Owner { return Owner{client: id, n: n} }

// ParseOwner parses the exact text of [Owner.String]: the UUID in 36 lower-case characters, a colon, and
// the number in decimal without a plus sign or leading zeros. Other texts give redlatch.ErrInvalid.
func ParseOwner(text string) (Owner, error) {
	if len(text) < uuidLen+2 {
		return Owner{}, badOwner(text)
	}
	id, idErr := uuid.Parse(text[:uuidLen])
	n, nErr := strconv.ParseInt(text[uuidLen+1:], 10, 64)
	if idErr != nil || nErr != nil {
		return Owner{}, badOwner(text)
	}
	// The parsers accept other forms, and the colon is not checked yet.
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

// LockChannel returns the channel that announces that the lock with this mapped name is free.
func LockChannel(name string) string { return limits.Derived("redisson_lock__channel", name) }

// QueueKey returns the key of a fair lock's list of waiters.
func QueueKey(name string) string { return limits.Derived("redisson_lock_queue", name) }

// TimeoutKey returns the key of the sorted set of the deadlines of a fair lock's waiters, in milliseconds
// since 1970.
func TimeoutKey(name string) string { return limits.Derived("redisson_lock_timeout", name) }
