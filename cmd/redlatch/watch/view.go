package watch

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// eventJSON is an event in the JSON output.
type eventJSON struct {
	At time.Time `json:"at"`
	inspect.Named
	Event string `json:"event"`
	Owner string `json:"owner,omitempty"`
	// OwnerBase64 has the bytes of an owner that is no UTF-8.
	OwnerBase64 string `json:"owner_base64,omitempty"`
	*inspect.Client
	Label string `json:"label,omitempty"`
	// From is the owner that had the lock before.
	From  string        `json:"from,omitempty"`
	Count inspect.Count `json:"count,omitempty"`
	// Mode is what a read/write lock is held for, "read" or "write".
	Mode string `json:"mode,omitempty"`
	// LeaseMillis is what the lease has left, nil when it has none or it is not the
	// owner's.
	LeaseMillis *int64 `json:"ttl_ms,omitempty"`
	// NoTTL says that the owner holds the lock and has no lease.
	NoTTL    bool `json:"no_ttl,omitempty"`
	Position int  `json:"position,omitempty"`
	Queue    int  `json:"queue_length"`
	// Messages is how many messages there were since the last look.
	Messages int `json:"messages"`
}

func eventJSONOf(e *follow.Event, label string) *eventJSON {
	t := &eventJSON{
		At: e.At.UTC(), Named: inspect.NameOf(e.Name), Event: e.What, Owner: e.Owner, OwnerBase64: inspect.Base64(e.Owner), Label: label, From: e.From, Count: inspect.Count(e.Count), Mode: e.Mode,
		Position: e.Place, Queue: e.Queue, Messages: e.Messages,
	}
	if e.Owner != "" {
		c := inspect.ClientOf(e.Owner)
		t.Client = &c
	}
	lease := inspect.LeaseOf(e.Count != "", e.Lease)
	t.LeaseMillis, t.NoTTL = lease.TTLMillis, lease.NoTTL
	return t
}

// leastLabel is how much of a label is shown where there is no room for it.
const leastLabel = 8

// eventLine formats an event as a line that fits a terminal, as far as names let it.
func eventLine(e *follow.Event, label string, named bool) string {
	line := fmt.Sprintf("%s %-8s  %s", e.At.UTC().Format("15:04:05.000Z"), e.What, eventWords(e))
	if named {
		line += "  " + sanitize.Word(e.Name)
	}
	if label == "" {
		return line
	}
	room := max(leastLabel, cli.Columns-2-sanitize.Width(line))
	return line + "  " + sanitize.Truncate(sanitize.Line(label), room)
}

// eventWords formats the details of an event after its name.
func eventWords(e *follow.Event) string {
	who := "owner unknown"
	if e.Owner != "" {
		who = inspect.ShortOwner(e.Owner)
	}
	switch e.What {
	case follow.Free:
		if e.Queue == 0 {
			return "the queue is empty"
		}
		return fmt.Sprintf("%d queued, next %s", e.Queue, inspect.ShortOwner(e.Next))
	case follow.Held:
		return fmt.Sprintf("%s, count %s, %s", who, sanitize.Word(e.Count), leaseWords(e))
	case follow.Taken:
		return who + ", " + leaseWords(e)
	case follow.Passed:
		return who + " from " + inspect.OwnerNumber(e.From)
	case follow.Entered, follow.Left:
		if e.Count == "" {
			return who + ", others hold it"
		}
		return who + ", count " + sanitize.Word(e.Count)
	case follow.Queued:
		return fmt.Sprintf("%s, place %d", who, e.Place)
	}
	return who
}

func leaseWords(e *follow.Event) string {
	if e.Lease < 0 {
		return "no lease"
	}
	return "lease " + cli.Lease(e.Lease)
}
