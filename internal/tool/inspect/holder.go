package inspect

import (
	"encoding/json"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Holder is a holder of a lock.
type Holder struct {
	// Owner is as it stands in Redis: that of a write lock ends in ":write".
	Owner string `json:"owner"`
	Count Count  `json:"count"`
	Client
	// Mode is what it holds a read/write lock for, "read" or "write", or "permit" for a permit of
	// a semaphore, whose owner is the permit's id.
	Mode string `json:"mode,omitempty"`
	// LeftMillis is what a reader or a permit has left of its own lease, 0 when that is over; nil
	// when it has none or it is not known.
	LeftMillis *int64 `json:"left_ms,omitempty"`
	// Renewed is whether that lease was seen to be renewed, "" if it was not watched.
	Renewed string `json:"renewed,omitempty"`
	// Label is that of the owner's client, empty when it has none.
	Label string `json:"label,omitempty"`
}

// Count is how often the owner has entered, a number unless the field holds
// something else.
type Count string

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(c))
}

// holderOf returns the holder that a field of a lock's hash names.
func holderOf(owner, count string, readWrite bool) Holder {
	h := Holder{Owner: owner, Count: Count(count), Client: ClientOf(owner)}
	if readWrite {
		h.Mode = codec.ModeRead
		if _, writes := codec.WriterOf(owner); writes {
			h.Mode = codec.ModeWrite
		}
	}
	return h
}

// ReadLeases reads what each reader among the holders of a read/write lock has left of its own
// lease: LeftMillis stays nil for a reader without a lease, and for the unread ones, whose leases
// are not known.
func ReadLeases(c redis.Conn, name string, holders []Holder) (unread []string) {
	left, _ := ReadersLeft(c, name, holders) // none, if the connection is broken
	for i := range holders {
		h := &holders[i]
		switch d, known := left[h.Owner]; {
		case known && d >= 0:
			ms := d.Milliseconds()
			h.LeftMillis = &ms
		case !known && h.Mode == codec.ModeRead:
			unread = append(unread, h.Owner)
		}
	}
	return unread
}

// IsOver reports whether it is a reader or a permit whose own lease has expired: it no longer
// blocks anyone.
func (h *Holder) IsOver() bool { return h.LeftMillis != nil && *h.LeftMillis == 0 }

// Describe returns what there is to say of a holder beyond its owner and count. Show formats
// milliseconds.
func (h *Holder) Describe(show func(ms int64) string) string {
	said := h.String()
	switch h.Mode {
	case codec.ModeWrite:
		said += ", writes"
	case codec.ModeRead:
		said += ", reads" + h.lease(show)
	case "permit":
		said = "permit" + h.lease(show)
		if h.LeftMillis == nil {
			said += ", never ends"
		}
	}
	if h.Label != "" {
		said += ", label " + sanitize.Word(h.Label)
	}
	return said
}

// lease returns what there is to say of the holder's own lease, after a comma; "" for nothing.
func (h *Holder) lease(show func(ms int64) string) string {
	switch {
	case h.LeftMillis == nil:
		return ""
	case h.IsOver():
		return ", its own lease is over"
	}
	said := ", " + show(*h.LeftMillis) + " left"
	switch h.Renewed {
	case RenewedYes:
		said += ", renewed"
	case RenewedNo:
		said += ", not renewed when due"
	}
	return said
}

// ModeText returns the mode of a read/write lock in words.
func ModeText(mode string) string {
	if mode == codec.ModeWrite {
		return "read/write, held for writing"
	}
	return "read/write, held for reading"
}
