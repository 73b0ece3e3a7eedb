package codec

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrBadReply reports a reply of a type or value that the script or command
// never gives.
var ErrBadReply = errors.New("redlatch: unexpected reply")

// Acquired decodes the reply of an acquire: nil says that the lock was taken; a
// number says that it was not, and gives the milliseconds to wait at most before
// the next attempt. [NoTTL] means that the holder's key never expires. Other
// negative numbers, which a fair lock gives when a predecessor is overdue, become
// 0: ask again soon. The number may come in an array, before the holder, see
// [RefusedBy]. Other replies give an error that wraps [ErrBadReply].
func Acquired(reply any) (acquired bool, ttl time.Duration, err error) {
	if reply == nil {
		return true, 0, nil
	}
	left := reply
	if pair, ok := reply.([]any); ok && len(pair) > 0 && len(pair) <= 2 {
		left = pair[0]
	}
	ms, ok := left.(int64)
	switch {
	case !ok:
		return false, 0, badReply("acquire", reply)
	case ms == -1:
		return false, NoTTL, nil
	}
	return false, fromMillis(max(ms, 0)), nil
}

// RefusedBy returns who holds the lock, of the reply of an acquire that was
// refused: the zero Owner when the reply does not say, or names one that is no
// [Owner] of ours or Redisson's.
func RefusedBy(reply any) Owner {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return Owner{}
	}
	text, _ := bulk(pair[1])
	owner, err := ParseOwner(text)
	if err != nil {
		return Owner{}
	}
	return owner
}

// Held is one field of a lock's hash.
type Held struct {
	// Owner is the owner as it stands in Redis; see [ParseOwner].
	Owner string
	// Count is how often the owner has entered.
	Count int64
}

// Inspected decodes the reply of an inspection: the time left, [NoTTL], or
// [NoKey] when the lock is free, and who holds it. Other replies, and counts that
// are no numbers, give an error that wraps [ErrBadReply].
func Inspected(reply any) (left time.Duration, held []Held, err error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) < 2 {
		return 0, nil, badReply("inspection", reply)
	}
	if left, err = Millis(parts[0]); err != nil {
		return 0, nil, err
	}
	fields, ok := parts[1].([]any)
	if !ok || len(fields)%2 != 0 {
		return 0, nil, badReply("inspection", parts[1])
	}
	for i := 0; i < len(fields); i += 2 {
		owner, isText := bulk(fields[i])
		if !isText {
			return 0, nil, badReply("inspection", fields[i])
		}
		count, err := Count(fields[i+1])
		if err != nil {
			return 0, nil, err
		}
		held = append(held, Held{Owner: owner, Count: count})
	}
	return left, held, nil
}

// ReleaseOutcome says what a release did. Its zero value is no outcome.
type ReleaseOutcome uint8

const (
	// NotHeld means that the owner did not hold the lock; nothing was changed.
	NotHeld ReleaseOutcome = iota + 1

	// Free means that the lock is free now and that waiters were told.
	Free

	// StillHeld means that the owner holds the lock still, fewer times.
	StillHeld
)

// String returns the outcome in words.
func (o ReleaseOutcome) String() string {
	switch o {
	case NotHeld:
		return "not held"
	case Free:
		return "free"
	case StillHeld:
		return "still held"
	}
	return "unknown"
}

// Released decodes the reply of a release: nil is [NotHeld], 1 is [Free], 0 is
// [StillHeld]. Other replies give an error that wraps [ErrBadReply].
func Released(reply any) (ReleaseOutcome, error) {
	switch reply {
	case nil:
		return NotHeld, nil
	case int64(1):
		return Free, nil
	case int64(0):
		return StillHeld, nil
	}
	return 0, badReply("release", reply)
}

// Forced decodes the reply of a forced release: 1 says that there was a holder,
// 0 that there was none. Other replies give an error that wraps [ErrBadReply].
func Forced(reply any) (bool, error) { return flag("forced release", reply) }

// Exists decodes the reply of EXISTS for one key, or of HEXISTS: 1 or 0. Other
// replies give an error that wraps [ErrBadReply].
func Exists(reply any) (bool, error) { return flag("exists", reply) }

func flag(of string, reply any) (bool, error) {
	switch reply {
	case int64(1):
		return true, nil
	case int64(0):
		return false, nil
	}
	return false, badReply(of, reply)
}

// RenewedAt decodes the i-th of the n answers to a batched renewal, counted from
// 0: true says that the lock was renewed, false that its owner does not hold it.
// A reply that is not an array of n, an i outside it, and an answer that is
// neither 1 nor 0 give an error that wraps [ErrBadReply]. It does not allocate.
func RenewedAt(reply any, i, n int) (bool, error) {
	answers, ok := reply.([]any)
	if !ok || len(answers) != n || i < 0 || i >= n {
		return false, badReply("renewal", reply)
	}
	return flag("renewal", answers[i])
}

// Count decodes the reply of HGET for an owner: how often it holds the lock, 0
// when there is no such field. A text that is not a decimal number and other
// types give an error that wraps [ErrBadReply].
func Count(reply any) (int64, error) {
	text, isText := bulk(reply)
	if reply == nil {
		return 0, nil
	}
	if n, ok := parseDecimal(text); isText && ok {
		return n, nil
	}
	return 0, badReply("count", reply)
}

// Millis decodes the reply of PTTL: the time left, [NoTTL] or [NoKey]. Other
// types and numbers below −2 give an error that wraps [ErrBadReply].
func Millis(reply any) (time.Duration, error) {
	ms, ok := reply.(int64)
	switch {
	case !ok || ms < -2:
		return 0, badReply("time left", reply)
	case ms == -1:
		return NoTTL, nil
	case ms == -2:
		return NoKey, nil
	}
	return fromMillis(ms), nil
}

// bulk returns the text of a bulk string; clients differ in how they hand it on.
func bulk(reply any) (string, bool) {
	switch text := reply.(type) {
	case string:
		return text, true
	case []byte:
		return string(text), true
	}
	return "", false
}

// badReply names the reply's type, and its value as far as it is short and safe
// to print.
func badReply(of string, reply any) error {
	value := ""
	switch r := reply.(type) {
	case int64:
		value = " " + strconv.FormatInt(r, 10)
	case error:
		value = " " + Quote(r.Error())
	case []any:
		value = " of " + strconv.Itoa(len(r))
	default:
		if text, ok := bulk(reply); ok {
			value = " " + Quote(text)
		}
	}
	return fmt.Errorf("%w to %s: %T%s", ErrBadReply, of, reply, value)
}
