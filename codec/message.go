package codec

import (
	"errors"
	"fmt"
	"strconv"
)

const (
	// MessageUnlock is the message that a lock has become free.
	MessageUnlock = "0"

	// MessageReadUnlock is the message with which a write lock lets all waiting
	// readers in.
	MessageReadUnlock = "1"
)

// ErrBadMessage reports a message that is not a decimal number, hence not from
// Redlatch or Redisson.
var ErrBadMessage = errors.New("redlatch: bad message")

// ErrBadReply reports a reply of a type or value that the script or command
// never gives.
var ErrBadReply = errors.New("redlatch: unexpected reply")

// ParseMessage reads the payload of a message on a lock's channel: an int64 in
// decimal, without a plus sign or leading zeros. Anything else gives an error
// that wraps [ErrBadMessage]. Numbers other than those of [MessageUnlock] and
// [MessageReadUnlock] have no meaning to a lock and are to be ignored.
func ParseMessage(payload string) (int64, error) {
	n, ok := parseDecimal(payload)
	if !ok {
		return 0, fmt.Errorf("%w: want a decimal number, got %s", ErrBadMessage, Quote(payload))
	}
	return n, nil
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
