package respconn

import (
	"bytes"
	"errors"
	"fmt"
)

// Limits on the replies of a server.
const (
	maxLine     = 64 << 10  // bytes in a line, such as an error, a number or a length
	maxBulk     = 32 << 20  // bytes in a string
	maxReply    = 256 << 20 // bytes in a reply
	maxElements = 1 << 20   // elements in a reply, on all levels
	maxDepth    = 16        // levels of nested arrays
)

// ErrLimit reports a reply that is larger than any reply that a lock needs.
var ErrLimit = errors.New("redlatch: reply too large")

// follower tracks the position in a stream of replies. The zero value is at the first reply.
type follower struct {
	kind   byte // the first byte of the line
	line   int  // bytes of the line so far
	number int  // the length announced by the line so far
	none   bool // the length is negative, which means null

	bulk int // remaining bytes of a string, including the line end

	left     [maxDepth]int // remaining elements on each level
	depth    int
	elements int // announced in this reply so far
	size     int // bytes of this reply so far

	whole bool // the last byte ended a reply
}

// follow consumes b up to the end of a reply and returns the number of consumed bytes. If a length
// exceeds a limit, follow stops before the end of the line that contains it.
func (f *follower) follow(b []byte) (int, error) {
	f.whole = false
	for i := 0; i < len(b); {
		if f.whole {
			return i, nil
		}
		if f.bulk > 0 {
			n := min(f.bulk, len(b)-i)
			i += n
			if f.bulk -= n; f.bulk == 0 {
				f.done()
			}
			continue
		}
		end := bytes.IndexByte(b[i:], '\n')
		part := b[i:]
		if end >= 0 {
			part = part[:end]
		}
		if err := f.read(part); err != nil {
			return i, err
		}
		i += len(part)
		if end < 0 {
			break
		}
		if err := f.ends(); err != nil {
			return i, err // before the end of the line
		}
		i++
	}
	return len(b), nil
}

func (f *follower) read(part []byte) error {
	if len(part) == 0 {
		return nil
	}
	if f.line == 0 {
		f.kind, f.number, f.none = part[0], 0, false
	}
	f.line += len(part)
	if f.line > maxLine {
		return fmt.Errorf("%w: a line of more than %d bytes", ErrLimit, maxLine)
	}
	if f.kind != '$' && f.kind != '*' {
		return nil
	}
	for _, c := range part {
		switch {
		case c == '-':
			f.none = true
		case c >= '0' && c <= '9':
			if f.number > maxReply/10 {
				f.number = maxReply + 1 // exceeds every limit without an overflow
				continue
			}
			f.number = 10*f.number + int(c-'0')
		}
	}
	return nil
}

func (f *follower) ends() error {
	f.size += f.line
	kind := f.kind
	f.kind, f.line = 0, 0
	switch {
	case f.size > maxReply:
		return fmt.Errorf("%w: a reply of more than %d bytes", ErrLimit, maxReply)
	case kind == '$' && !f.none:
		return f.string()
	case kind == '*' && !f.none && f.number > 0:
		return f.array()
	}
	f.done()
	return nil
}

func (f *follower) string() error {
	f.size += f.number
	switch {
	case f.number > maxBulk:
		return fmt.Errorf("%w: a string of more than %d bytes", ErrLimit, maxBulk)
	case f.size > maxReply:
		return fmt.Errorf("%w: a reply of more than %d bytes", ErrLimit, maxReply)
	}
	f.bulk = f.number + len("\r\n")
	return nil
}

func (f *follower) array() error {
	f.elements += f.number
	switch {
	case f.elements > maxElements:
		return fmt.Errorf("%w: a reply of more than %d elements", ErrLimit, maxElements)
	case f.depth == maxDepth:
		return fmt.Errorf("%w: arrays of more than %d levels", ErrLimit, maxDepth)
	}
	f.left[f.depth] = f.number
	f.depth++
	return nil
}

// done counts a complete element, and the arrays that it completes.
func (f *follower) done() {
	for f.depth > 0 {
		f.left[f.depth-1]--
		if f.left[f.depth-1] > 0 {
			return
		}
		f.depth--
	}
	f.elements, f.size, f.whole = 0, 0, true
}
