// Package reply decodes the replies to scripts and commands. For an unexpected reply, it returns an error that wraps
// [transport.ErrBadReply].
package reply

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// Acquired decodes the reply to an attempt to acquire a lock. If the lock was not acquired, ttl is the maximum time
// until the next attempt, or [NoTTL] if the lock never expires. ttl is 0 if the reply contains another negative
// number, which a fair lock returns if an overdue waiter is ahead in the queue.
func Acquired(reply any) (acquired bool, ttl time.Duration, err error) {
	if reply == nil {
		return true, 0, nil
	}
	left := reply
	if pair, ok := reply.([]any); ok && len(pair) > 0 && len(pair) <= 4 {
		left = pair[0]
	}
	ms, ok := left.(int64)
	switch {
	case !ok:
		return false, 0, badReply("acquire", reply)
	case ms == -1:
		return false, NoTTL, nil
	}
	return false, limits.FromMillis(max(ms, 0)), nil
}

// Refusal contains the details of a refused attempt.
type Refusal struct {
	// Holder is the zero Owner if the lock is free or its holder is unknown.
	Holder codec.Owner
	Free   bool
	// Foreign is true if the reply names a field that cannot be an owner.
	Foreign bool
	// Head is the next owner in the queue of a fair lock, as stored in Redis.
	Head string
	// Position is the owner's place in the queue, counting from 1, if this attempt queued the owner.
	Position int
}

// Refused decodes the details of a refused attempt. Missing details are left at zero.
func Refused(reply any) Refusal {
	parts, _ := reply.([]any)
	var r Refusal
	if len(parts) > 1 {
		text, isText := bulk(parts[1])
		r.Free = isText && text == ""
		text, _ = protocol.WriterOf(text)
		owner, err := codec.ParseOwner(text)
		if err == nil {
			r.Holder = owner
		}
		r.Foreign = err != nil && text != "" && !owned.MatchString(text)
	}
	if len(parts) > 3 {
		r.Head, _ = bulk(parts[2])
		position, _ := parts[3].(int64)
		r.Position = int(position)
	}
	return r
}

var owned = regexp.MustCompile(`:-?\d`)

// Foreign decodes the reply to a check of whether another program uses the key. If foreign is true, field is a field of
// its hash.
func Foreign(reply any) (field string, foreign bool, err error) {
	field, isText := bulk(reply)
	if !isText && reply != nil {
		return "", false, badReply("foreign", reply)
	}
	return field, isText, nil
}

// Reentered decodes the reply to a re-entry and reports whether the owner holds the lock.
func Reentered(reply any) (bool, error) { return oneOrNil("re-entry", reply) }

// Token decodes the reply to a script that returns a token when it grants the lock: a number, or a string if a number
// would lose digits. Token returns false if the lock was not granted.
func Token(reply any) (token int64, granted bool, err error) {
	switch r := reply.(type) {
	case nil, []any:
		return 0, false, nil
	case int64:
		token = r
	default:
		text, _ := bulk(reply)
		token, _ = parseDecimal(text)
	}
	if token < 1 {
		return 0, false, badReply("token", reply)
	}
	return token, true, nil
}

// Holds decodes the reply to a replicated call and reports whether the owner holds the lock.
func Holds(reply any) (bool, error) { return oneOrNil("replication", reply) }

func oneOrNil(of string, reply any) (bool, error) {
	switch reply {
	case int64(1):
		return true, nil
	case nil:
		return false, nil
	}
	return false, badReply(of, reply)
}

// ReleaseOutcome is the result of a release. The zero value is not a valid outcome.
type ReleaseOutcome uint8

const (
	// NotHeld means that the owner did not hold the lock; nothing changed.
	NotHeld ReleaseOutcome = iota + 1

	// Free means that the lock is now free and that waiters were notified.
	Free

	// StillHeld means that the owner still holds the lock.
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

// Released decodes the reply to a release: nil means [NotHeld], 1 means [Free] and 0 means [StillHeld]. A fair lock
// that was already free returns 2, which also means [NotHeld].
func Released(reply any) (ReleaseOutcome, error) {
	switch reply {
	case nil, int64(2):
		return NotHeld, nil
	case int64(1):
		return Free, nil
	case int64(0):
		return StillHeld, nil
	}
	return 0, badReply("release", reply)
}

// Forced decodes the reply to a forced release and reports whether there was a holder.
func Forced(reply any) (bool, error) { return flag("forced release", reply) }

// Exists decodes the reply to EXISTS for one key, or to HEXISTS.
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

// RenewedAt decodes the i-th of the n replies to a batched renewal, counting from 0. It does not allocate.
func RenewedAt(reply any, i, n int) (bool, error) {
	answers, ok := reply.([]any)
	if !ok || len(answers) != n || i < 0 || i >= n {
		return false, badReply("renewal", reply)
	}
	return flag("renewal", answers[i])
}

// Count decodes the reply to HGET for a hold count, which is 0 if there is none.
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

// Millis decodes the reply to PTTL: the time left, [NoTTL] or [NoKey].
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
	return limits.FromMillis(ms), nil
}

func bulk(reply any) (string, bool) {
	switch text := reply.(type) {
	case string:
		return text, true
	case []byte:
		return string(text), true
	}
	return "", false
}

// badReply includes a value that is short and safe to print.
func badReply(of string, reply any) error {
	value := ""
	switch r := reply.(type) {
	case int64:
		value = " " + strconv.FormatInt(r, 10)
	case error:
		value = " " + limits.Quote(r.Error())
	case []any:
		value = " of " + strconv.Itoa(len(r))
	default:
		if text, ok := bulk(reply); ok {
			value = " " + limits.Quote(text)
		}
	}
	return fmt.Errorf("%w to %s: %T%s", transport.ErrBadReply, of, reply, value)
}

func parseDecimal(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false
	}
	var spelt [20]byte
	return n, string(strconv.AppendInt(spelt[:0], n, 10)) == text
}

const (
	// NoTTL is the time left for a key that never expires. It is negative.
	NoTTL time.Duration = -1

	// NoKey is the time left for a key that does not exist. It is less than [NoTTL].
	NoKey time.Duration = -2
)

// Place is a place in the queue of a fair lock.
type Place struct {
	Owner string
	// Deadline is the exact text that Redis returned, or "" if there is no deadline.
	Deadline string
}

// Other is a waiter in another process.
type Other struct {
	Owner string
	// Wait is its estimated waiting time in milliseconds: the difference between its deadline and the previous one
	// when it was first seen, or 0 if unknown.
	Wait int64
	// Living is true if its channel has a subscriber.
	Living bool
}

// Beat is the result of a heartbeat.
type Beat struct {
	// Left is the lock's remaining time in milliseconds, -1 if it never expires, or -2 if it is free.
	Left  int64
	Front []Place
	// Missing contains the given owners that must queue again.
	Missing []string
	Length  int64
}

// Free reports whether the lock is free.
func (b Beat) Free() bool { return b.Left == -2 }

// DecodeBeat decodes the reply to a heartbeat.
func DecodeBeat(reply any) (Beat, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 4 {
		return Beat{}, badReply("heartbeat", reply)
	}
	var b Beat
	if b.Left, ok = parts[0].(int64); !ok || b.Left < -2 {
		return Beat{}, badReply("heartbeat", parts[0])
	}
	var err error
	if b.Front, err = places(parts[1]); err != nil {
		return Beat{}, err
	}
	if b.Missing, err = texts("heartbeat", parts[2]); err != nil {
		return Beat{}, err
	}
	if b.Length, ok = parts[3].(int64); !ok || b.Length < int64(len(b.Front)) {
		return Beat{}, badReply("heartbeat", parts[3])
	}
	return b, nil
}

func places(reply any) ([]Place, error) {
	all, err := pairs("heartbeat", reply)
	if err != nil {
		return nil, err
	}
	front := make([]Place, 0, len(all))
	for _, p := range all {
		ms, err := strconv.ParseFloat(p[1], 64)
		if p[1] != "" && (err != nil || math.IsNaN(ms)) {
			return nil, badReply("heartbeat", p[1])
		}
		front = append(front, Place{Owner: p[0], Deadline: p[1]})
	}
	return front, nil
}

// DecodeEvicted decodes the evicted owners in the order of the queue.
func DecodeEvicted(reply any) ([]string, error) { return texts("eviction", reply) }

// Nudged decodes the reply to a nudge and reports whether the owner was notified.
func Nudged(reply any) (bool, error) { return flag("nudge", reply) }
