package list

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// listed is a lock for programs.
type listed struct {
	inspect.Named
	Kind string `json:"kind"`
	Held bool   `json:"held"`
	// Mode is what a read/write lock is held for, "read" or "write".
	Mode    string           `json:"mode,omitempty"`
	Holders []inspect.Holder `json:"holders"`
	// More means that there are holders that are not listed.
	More bool `json:"more_holders,omitempty"`
	inspect.Lease
	Queue int64 `json:"queue_length"`
	// NotSubscribed is how many of the queue have no subscriber, with --dead-waiters, and
	// NotLookedAt how many of a long queue were not looked at: the last ones.
	NotSubscribed int   `json:"not_subscribed,omitempty"`
	NotLookedAt   int64 `json:"not_looked_at,omitempty"`
	// Token is the last fencing token that was given, left out for a lock without.
	Token int64 `json:"token,omitempty"`
	// Next is the first in the queue, nil when the queue is empty.
	Next *listedNext `json:"next,omitempty"`
	// PlainWaiters and ReadWriteWaiters are as in status: how many wait for another kind of
	// lock of the name.
	PlainWaiters     int64 `json:"plain_waiters,omitempty"`
	ReadWriteWaiters int64 `json:"read_write_waiters,omitempty"`
}

// listedNext is the first in a queue.
type listedNext struct {
	inspect.Owned
	inspect.Client
	Label string `json:"label,omitempty"`
}

func listedOf(l *listing.Lock) *listed {
	out := &listed{
		Named: inspect.NameOf(l.Name), Kind: string(l.Kind), Held: len(l.Holders) > 0, Mode: l.Mode, Holders: []inspect.Holder{}, More: l.More,
		Lease: inspect.LeaseOf(len(l.Holders) > 0, l.TTL), Queue: l.Queue, NotSubscribed: l.NotSubscribed, Token: l.Token,
		PlainWaiters: l.PlainWaiters, ReadWriteWaiters: l.ReadWriteWaiters,
	}
	if l.NotSubscribed > 0 {
		out.NotLookedAt = max(0, l.Queue-inspect.LookedAt)
	}
	for _, h := range l.Holders {
		out.Holders = append(out.Holders, inspect.HolderOf(h, l.Kind))
	}
	if l.Next != "" {
		out.Next = &listedNext{Owned: inspect.OwnedBy(l.Next), Client: inspect.ClientOf(l.Next), Label: l.NextLabel}
	}
	return out
}

// row is a lock for people: a line of cells, and lines below it.
type row struct {
	name  string
	cells string
	free  bool
	notes []string
}

// The table's columns make a line of 79, one less than a terminal has.
const (
	nameWidth   = 22
	holderWidth = 28
	cells       = "%-5s  %s %5s %7s %5s"
)

func rowOf(l *listing.Lock) row {
	if l.Number != nil {
		return numberRowOf(l)
	}
	r := row{name: sanitize.Word(l.Name), free: len(l.Holders) == 0}
	who, entered, lease, queue := "free", "-", "-", "-"
	if !r.free {
		who, entered, lease = holdersOf(l), sanitize.Word(l.Holders[0].Count), cli.Lease(l.TTL)
	}
	if l.Queue > 0 {
		queue = strconv.FormatInt(l.Queue, 10)
	}
	kind := kindOf(l)
	r.cells = strings.TrimRight(fmt.Sprintf(cells, kind, sanitize.Pad(who, holderWidth), entered, lease, queue), " ")
	if in := inspect.Base64(l.Name); in != "" {
		r.notes = append(r.notes, "  base64 "+in+"\n")
	}
	for _, h := range l.Holders {
		if h.Label != "" {
			r.notes = append(r.notes, cli.Indented("label", sanitize.Line(h.Label)))
		}
	}
	if l.Token > 0 {
		r.notes = append(r.notes, cli.Indented("token", strconv.FormatInt(l.Token, 10)))
	}
	if l.HasTwoKinds() {
		r.notes = append(r.notes, cli.Indented("mixed", "two kinds of lock have this name: redlatch status says which"))
	}
	if l.NotSubscribed > 0 {
		r.notes = append(r.notes, cli.Indented("dead", absentOf(int64(l.NotSubscribed), l.Queue)))
	}
	if r.free {
		next := inspect.ShortOwner(l.Next)
		if inspect.Base64(l.Next) != "" {
			next = inspect.Shown(l.Next)
		}
		if l.NextLabel != "" {
			next += ", " + sanitize.Line(l.NextLabel)
		}
		r.notes = append(r.notes, cli.Indented("next", next))
	}
	return r
}

// absentOf says how many of a queue have no subscriber.
func absentOf(absent, queue int64) string {
	waiters, have := "waiters", "have"
	if queue == 1 {
		waiters = "waiter"
	}
	if absent == 1 {
		have = "has"
	}
	of := strconv.FormatInt(queue, 10)
	if queue > inspect.LookedAt {
		of = fmt.Sprintf("the first %d of %d", inspect.LookedAt, queue)
	}
	return fmt.Sprintf("%d of %s %s %s no subscriber", absent, of, waiters, have)
}

// kindOf names the kind in the width of its column: tokens have a line of their own.
func kindOf(l *listing.Lock) string {
	switch l.Kind {
	case listing.ReadWrite:
		return "r/w"
	case listing.Fenced:
		return string(listing.Plain)
	case listing.FairFenced:
		return string(listing.Fair)
	}
	return string(l.Kind)
}

// holdersOf names the first holder, as far as its column has room, and says how many
// others there are.
func holdersOf(l *listing.Lock) string {
	others := ""
	switch n := len(l.Holders) - 1; {
	case l.More:
		others = " +..."
	case n > 0:
		others = fmt.Sprintf(" +%d", n)
	}
	return sanitize.Truncate(inspect.ShortOwner(l.Holders[0].Owner), holderWidth-len(others)) + others
}

// lines returns the row as it is shown.
func (r *row) lines(look cli.Look) []string {
	shown := r.cells
	if r.free {
		shown = look.Paint(cli.Yellow, shown)
	}
	var all []string
	if sanitize.Width(r.name) > nameWidth {
		all = append(all, r.name, strings.Repeat(" ", nameWidth+2)+shown)
	} else {
		all = append(all, sanitize.Pad(r.name, nameWidth)+"  "+shown)
	}
	for _, note := range r.notes {
		all = append(all, strings.Split(strings.TrimSuffix(note, "\n"), "\n")...)
	}
	return all
}

// heading is the line above the rows.
func heading(look cli.Look) string {
	return look.Paint(cli.Bold, fmt.Sprintf("%-*s  "+cells, nameWidth, "NAME", "KIND", sanitize.Pad("HOLDER", holderWidth), "COUNT", "LEASE", "QUEUE"))
}
