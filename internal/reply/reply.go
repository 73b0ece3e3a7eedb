// Package reply decodes the replies of the scripts and of the commands that locks send:
// what an acquire, a release, a renewal, an inspection or a heartbeat of a queue returned.
// A reply that no server gives is an error that wraps [transport.ErrBadReply]. It is pure: no
// Redis, no clock, no goroutine, and every function is safe for concurrent use.
package reply

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

// Acquired decodes the reply of an acquire: nil says that the lock was taken; a number says that
// it was not, and gives the milliseconds to wait at most before the next attempt. [NoTTL] means
// that the holder's key never expires. Other negative numbers, which a fair lock gives when a
// predecessor is overdue, become 0: ask again soon. The number may come in an array, before the
// holder, see [Refused].
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

// Refusal is what the reply of an acquire that was refused says besides the time
// left.
type Refusal struct {
	// Holder is the owner that holds the lock, the zero Owner when it is free, the
	// reply does not say, or it names one that is no [codec.Owner] of ours or
	// Redisson's.
	Holder codec.Owner
	// Free is true when the reply says that the lock is free.
	Free bool
	// Foreign is true when the reply names a field of the key that no lock has as an owner: the
	// key may be a hash of another program, or have such a field besides its owners.
	Foreign bool
	// Head is the next owner in the queue of a fair lock, as it stands in Redis.
	Head string
	// Position is the owner's place in the queue, from 1, when it was put at its end just now,
	// else 0.
	Position int
}

// Refused reads the reply of an acquire that was refused: a number alone, or an
// array of it, the holder, and, for a fair lock, the next in the queue and the place
// at which the owner was queued now. What is missing stays zero.
func Refused(reply any) Refusal {
	parts, _ := reply.([]any)
	var r Refusal
	if len(parts) > 1 {
		text, isText := bulk(parts[1])
		r.Free = isText && text == ""
		text, _ = codec.WriterOf(text) // of a read/write lock
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

// owned finds what each owner has in it, whatever its id, and whatever some kinds of Redisson's
// put before and behind it: a colon and the number of a thread.
var owned = regexp.MustCompile(`:-?\d`)

// Foreign decodes the reply of the script that tells a hash of another program from a lock: a
// field of such a hash, or nil, which says that it may be a lock.
func Foreign(reply any) (field string, foreign bool, err error) {
	field, isText := bulk(reply)
	if !isText && reply != nil {
		return "", false, badReply("foreign", reply)
	}
	return field, isText, nil
}

// Reentered decodes the reply of a re-entry: 1 says that the owner holds the lock, once more
// now, nil that it does not.
func Reentered(reply any) (bool, error) { return oneOrNil("re-entry", reply) }

// Token decodes the reply of a script that grants with a token: a number, or its text where a
// number would lose digits. A refusal, which is nil or an array, gives false.
func Token(reply any) (token int64, granted bool, err error) {
	switch r := reply.(type) {
	case nil, []any:
		return 0, false, nil
	case int64:
		token = r
	default:
		text, _ := bulk(reply)
		token, _ = parseDecimal(text) // 0 when it is none
	}
	if token < 1 {
		return 0, false, badReply("token", reply)
	}
	return token, true, nil
}

// Holds decodes the reply of the script that writes a lock once more for its replicas: 1 says
// that the owner holds the lock, nil that it does not.
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

// ReleaseOutcome says what a release did. Its zero value is no outcome.
type ReleaseOutcome uint8

const (
	// NotHeld means that the owner did not hold the lock; nothing was changed.
	NotHeld ReleaseOutcome = iota + 1

	// Free means that the lock is free now and that waiters were notified.
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

// Released decodes the reply of a release: nil is [NotHeld], 1 is [Free], 0 is [StillHeld], and
// 2, with which a fair lock says that it was free, is [NotHeld].
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

// Forced decodes the reply of a forced release: 1 says that there was a holder, 0 that there was
// none.
func Forced(reply any) (bool, error) { return flag("forced release", reply) }

// Exists decodes the reply of EXISTS for one key, or of HEXISTS: 1 or 0.
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
// neither 1 nor 0 give an error that wraps [transport.ErrBadReply]. It does not allocate.
func RenewedAt(reply any, i, n int) (bool, error) {
	answers, ok := reply.([]any)
	if !ok || len(answers) != n || i < 0 || i >= n {
		return false, badReply("renewal", reply)
	}
	return flag("renewal", answers[i])
}

// Count decodes the reply of HGET for an owner: how often it holds the lock, 0
// when there is no such field. A text that is not a decimal number and other
// types give an error that wraps [transport.ErrBadReply].
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

// Millis decodes the reply of PTTL: the time left, [NoTTL] or [NoKey].
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

// parseDecimal reads an int64 in its one spelling.
func parseDecimal(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false
	}
	var spelt [20]byte
	return n, string(strconv.AppendInt(spelt[:0], n, 10)) == text
}

const (
	// NoTTL is the time left of a key that never expires. It is negative.
	NoTTL time.Duration = -1

	// NoKey is the time left of a key that does not exist. It is negative and less
	// than [NoTTL].
	NoKey time.Duration = -2
)

// Place is one of the first in the queue of a fair lock.
type Place struct {
	// Owner is the owner as it stands in Redis; see [codec.ParseOwner].
	Owner string
	// Deadline is when the owner counts as dead once it is the first, in
	// milliseconds since 1970, by the text that Redis gives for it; empty when it
	// has none. The text is kept because it says exactly which deadline was seen.
	Deadline string
}

// Other is what a process knows of a waiter of another one.
type Other struct {
	// Owner is the owner as it stands in Redis; see [codec.ParseOwner].
	Owner string
	// Wait is by how many milliseconds its deadline was later than that of the one
	// before it when it was seen first: what it will take off the deadlines of the
	// others, more likely than not. 0 when that is not known.
	Wait int64
	// Living is true when its channel has a subscriber.
	Living bool
}

// Beat is what a heartbeat found when it had done its work.
type Beat struct {
	// Left is how many milliseconds the lock has left, -1 when it never expires,
	// -2 when it is free.
	Left int64
	// Front is the first in the queue, as many as were asked for, in their order.
	Front []Place
	// Missing is those of the given owners that have no place in the queue, or no
	// deadline: they were taken for dead, and must queue anew.
	Missing []string
	// Length is how many are in the queue.
	Length int64
}

// Free reports whether the lock is free.
func (b Beat) Free() bool { return b.Left == -2 }

// DecodeBeat decodes the reply of a heartbeat. A reply of another form, a deadline
// that is no number, and numbers that no server would give, such as a queue shorter
// than its front, give an error that wraps [transport.ErrBadReply].
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

// places decodes owners and deadlines in turn.
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

// DecodeEvicted decodes the reply of an eviction: the owners that were taken out of the queue,
// in its order.
func DecodeEvicted(reply any) ([]string, error) { return texts("eviction", reply) }

// Nudged decodes the reply of a nudge: true says that the owner was woken, false that it is not
// the first in the queue or that the lock is held.
func Nudged(reply any) (bool, error) { return flag("nudge", reply) }
