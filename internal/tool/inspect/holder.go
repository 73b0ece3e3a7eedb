package inspect

import (
	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// ReadLeases reads what each reader among the holders of a read/write lock has left of its own
// lease, as [listing.ReadersLeft] does: LeftMillis stays nil for a reader without a lease, and for
// the unread ones, whose leases are not known.
func ReadLeases(c redis.Conn, name string, holders []Holder) (unread []string) {
	asked := make([]listing.Holder, len(holders))
	for i := range holders {
		asked[i] = listing.Holder{Owner: holders[i].Owner, Count: string(holders[i].Count)}
	}
	left, _ := listing.ReadersLeft(c, name, asked) // none, if the connection is broken
	for i := range holders {
		h := &holders[i]
		switch d, known := left[h.Owner]; {
		case known && d >= 0:
			ms := d.Milliseconds()
			h.LeftMillis = &ms
		case !known && h.Mode == "read":
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
	case "write":
		said += ", writes"
	case "read":
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
	if mode == "write" {
		return "read/write, held for writing"
	}
	return "read/write, held for reading"
}
