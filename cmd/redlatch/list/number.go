package list

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// listedNumber is a name that holds a number, for programs. Its fields are those of redlatch
// status, which tells the permits, too.
type listedNumber struct {
	inspect.Named
	Kind      string `json:"kind"`
	Available int64  `json:"available"`
	Taken     int64  `json:"taken"`
	// TTLMillis is how long the number lives, nil for ever.
	TTLMillis     *int64 `json:"ttl_ms"`
	PermitWaiters int64  `json:"permit_waiters,omitempty"`
	LatchWaiters  int64  `json:"latch_waiters,omitempty"`
}

func listedNumberOf(l *listing.Lock) *listedNumber {
	n := l.Number
	return &listedNumber{
		inspect.NameOf(l.Name), string(l.Kind), n.Available, n.Taken, inspect.LeaseOf(true, l.TTL).TTLMillis,
		n.PermitWaiters, n.LatchWaiters,
	}
}

// numberRowOf is rowOf for a name that holds a number.
func numberRowOf(l *listing.Lock) row {
	n, kind := l.Number, string(l.Kind)
	lives, waiting := "-", "-"
	var said string
	switch l.Kind {
	case listing.Semaphore:
		kind, said = "sem", fmt.Sprintf("%d taken, %d available", n.Taken, n.Available)
	case listing.Latch:
		said = "open"
		if n.Available > 0 {
			said = fmt.Sprintf("closed, %d to count down", n.Available)
		}
	default:
		kind, said = "count", strconv.FormatInt(n.Available, 10)
	}
	if l.TTL != redlatch.NoTTL {
		lives = cli.Lease(l.TTL)
	}
	if n.Waiters() > 0 {
		waiting = strconv.FormatInt(n.Waiters(), 10)
	}
	shown := fmt.Sprintf(cells, kind, sanitize.Pad(sanitize.Truncate(said, holderWidth), holderWidth), "-", lives, waiting)
	return row{name: sanitize.Word(l.Name), cells: strings.TrimRight(shown, " ")}
}
