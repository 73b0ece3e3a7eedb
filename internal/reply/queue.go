package reply

import (
	"math"
	"strconv"
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

// DecodeEvicted decodes the reply of an eviction: the owners that were taken out of
// the queue, in its order. Other replies give an error that wraps [transport.ErrBadReply].
func DecodeEvicted(reply any) ([]string, error) { return texts("eviction", reply) }

// Nudged decodes the reply of a nudge: true says that the owner was woken, false
// that it is not the first in the queue or that the lock is held. Other replies give
// an error that wraps [transport.ErrBadReply].
func Nudged(reply any) (bool, error) { return flag("nudge", reply) }
