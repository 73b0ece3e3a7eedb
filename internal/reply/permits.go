package reply

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
)

// Permits is what the reply of an acquire says of a semaphore.
type Permits struct {
	// Granted is true when the permits were taken.
	Granted bool
	// Exists is false when the semaphore does not exist.
	Exists bool
	// Available is how many permits are left, below 0 when the semaphore owes some.
	Available int64
	// Total is how many there are with those that are taken, 0 when the reply does not say.
	Total int64
	// TTL is when the next lease of a permit ends, [NoTTL] when that is not known, or never.
	TTL time.Duration
}

// TakenPermits decodes the reply of an acquire of permits: a number says that they were taken
// and how many are left, an array of up to three numbers that they were not. Other replies give
// an error that wraps [transport.ErrBadReply].
func TakenPermits(reply any) (Permits, error) {
	if left, ok := reply.(int64); ok {
		return Permits{Granted: true, Exists: true, Available: left, TTL: NoTTL}, nil
	}
	n, err := numbers("acquire", reply, 1, 3)
	if err != nil {
		return Permits{}, err
	}
	p := Permits{TTL: NoTTL, Exists: len(n) > 1}
	if n[0] >= 0 {
		p.TTL = limits.FromMillis(n[0])
	}
	if len(n) > 1 {
		p.Available = n[1]
	}
	if len(n) > 2 {
		p.Total = n[2]
	}
	return p, nil
}

// ReturnedPermits decodes the reply of a release of permits: how many were given back, and how
// many of them had a lease that was over. Other replies give an error that wraps
// [transport.ErrBadReply].
func ReturnedPermits(reply any) (returned, over int64, err error) {
	n, err := numbers("release", reply, 2, 2)
	if err != nil {
		return 0, 0, err
	}
	return n[0], n[1], nil
}

// CountedPermits decodes the reply of a count: whether the semaphore exists, how many permits
// are available, and how many are taken. Other replies give an error that wraps
// [transport.ErrBadReply].
func CountedPermits(reply any) (exists bool, available, taken int64, err error) {
	n, err := numbers("count", reply, 3, 3)
	if err != nil {
		return false, 0, 0, err
	}
	return n[0] == 1, n[1], n[2], nil
}

// Number decodes a reply that is a number. Others give an error that wraps
// [transport.ErrBadReply].
func Number(reply any) (int64, error) {
	if n, ok := reply.(int64); ok {
		return n, nil
	}
	return 0, badReply("a number", reply)
}

func numbers(of string, reply any, least, most int) ([]int64, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) < least || len(parts) > most {
		return nil, badReply(of, reply)
	}
	n := make([]int64, len(parts))
	for i, part := range parts {
		if n[i], ok = part.(int64); !ok {
			return nil, badReply(of, reply)
		}
	}
	return n, nil
}

// Semaphore is what the script that reads a semaphore has found.
type Semaphore struct {
	// Left is how long the semaphore lives, [NoTTL] or [NoKey].
	Left time.Duration
	// Available is the text of its number, empty when it does not exist.
	Available string
	// Taken is how many permits are taken.
	Taken int64
	// Permits are those of them that were asked for, in the order in which they end.
	Permits []Permit
}

// Permit is one that is taken.
type Permit struct {
	// ID is the 16 bytes of its id.
	ID string
	// Ends is when its lease ends, in milliseconds since 1970.
	Ends float64
}

// InspectedPermits decodes the reply of the script that reads a semaphore. Other replies give an
// error that wraps [transport.ErrBadReply].
func InspectedPermits(reply any) (Semaphore, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 4 {
		return Semaphore{}, badReply("inspection", reply)
	}
	left, err := Millis(parts[0])
	if err != nil {
		return Semaphore{}, err
	}
	available, isText := bulk(parts[1])
	taken, isNumber := parts[2].(int64)
	pairs, isList := parts[3].([]any)
	if !isText || !isNumber || !isList || len(pairs)%2 != 0 {
		return Semaphore{}, badReply("inspection", reply)
	}
	s := Semaphore{Left: left, Available: available, Taken: taken}
	for i := 0; i < len(pairs); i += 2 {
		id, isText := bulk(pairs[i])
		score, _ := bulk(pairs[i+1])
		ends, err := strconv.ParseFloat(score, 64)
		if err != nil || !isText {
			return Semaphore{}, badReply("inspection", pairs[i+1])
		}
		s.Permits = append(s.Permits, Permit{id, ends})
	}
	return s, nil
}
