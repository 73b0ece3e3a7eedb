package board

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// again reads the locks of circles again and returns the circles that still exist.
type again func(found []inspect.Circle) ([]inspect.Circle, error)

func (b *Board) circlesAgain(ctx context.Context) again {
	r := inspect.CircleReader{Client: b.source.client, Dial: b.source.dial, Cluster: b.source.cluster}
	return func(found []inspect.Circle) ([]inspect.Circle, error) {
		ctx, cancel := context.WithTimeout(ctx, countWait)
		defer cancel()
		return r.Again(ctx, found)
	}
}

// findCircles finds the certain circles of waits, and marks their locks.
func (l *Locks) findCircles(m *memory, look again) {
	var locks []*inspect.Lock
	for i := range l.Entries {
		if e := &l.Entries[i]; e.Contended() {
			locks = append(locks, e.Lock)
		}
	}
	found := inspect.FindCircles(locks, m.isDead)
	if len(found) > 0 {
		found, _ = look(found) // none if they cannot be read
	}
	var pending bool
	l.Circles, pending = m.circles.Confirm(found)
	l.pending = l.pending || pending
	in := map[string]bool{}
	for _, c := range l.Circles {
		for _, s := range c {
			in[s.Lock] = true
		}
	}
	for i := range l.Entries {
		if e := &l.Entries[i]; in[e.Name] {
			e.Trouble = InCircle
		}
	}
	l.sort()
}

func bareOwner(owner string) string {
	bare, _ := protocol.WriterOf(owner)
	return bare
}

func (l *Locks) around(lock *Lock) (circles []inspect.Circle) {
	for _, c := range l.Circles {
		if slices.ContainsFunc(c, lock.has) {
			circles = append(circles, c)
		}
	}
	return circles
}

func (l *Locks) ahead(lock *Lock) (steps []inspect.Step) {
	if len(lock.Circles) > 0 {
		return nil
	}
	for i := range lock.Holders {
		h := &lock.Holders[i]
		client := l.Client(ClientID(h.Owner))
		if client == nil {
			continue
		}
		for _, wait := range client.Waits {
			if bareOwner(wait.Owner) != bareOwner(h.Owner) || len(wait.Holders) == 0 || wait.Name == lock.Name {
				continue
			}
			by := wait.Holders[0]
			steps = append(steps, inspect.Step{Lock: wait.Name, Waiter: wait.Owner, WaiterLabel: client.Label, Holder: by.Owner, HolderLabel: by.Label})
		}
	}
	return steps
}

const placesOfQueue = 32

// Client is a client with its holds and waits.
type Client struct {
	// ID is a UUID, or an owner that does not contain one.
	ID string
	inspect.Client
	Label string
	// Holds lists the worst troubles first. Waits is sorted by name.
	Holds    []Hold
	Waits    []Wait
	InCircle bool
}

// Hold is a lock that a client holds. Age is the age of this hold.
type Hold struct {
	Entry

	Owner, Count string // as stored in Redis
}

// Wait is a place in the queue of a lock. Position counts from 1.
type Wait struct {
	Entry

	Owner    string // as stored in Redis
	Position int
	Dead     bool
}

// ClientID returns the UUID in an owner, or the owner if it does not contain a UUID.
func ClientID(owner string) string {
	bare, _ := protocol.WriterOf(owner)
	parsed, err := codec.ParseOwner(bare)
	if err != nil {
		return owner
	}
	return parsed.Client().String()
}

// Client returns the client with the given ID, or nil.
func (l *Locks) Client(id string) *Client {
	i, found := slices.BinarySearchFunc(l.Clients, id, func(c Client, id string) int { return strings.Compare(c.ID, id) })
	if !found {
		return nil
	}
	return &l.Clients[i]
}

func clientsOf(entries []Entry, circles []inspect.Circle, dead func(lock, owner string) bool) []Client {
	byID := map[string]*Client{}
	of := func(owner, label string) *Client {
		id := ClientID(owner)
		c := byID[id]
		if c == nil {
			c = &Client{ID: id, Client: inspect.ClientOf(owner)}
			byID[id] = c
		}
		c.Label = cmp.Or(c.Label, label)
		return c
	}
	for _, e := range entries {
		for i, h := range e.Holders {
			c := of(h.Owner, h.Label)
			hold := Hold{e, h.Owner, string(h.Count)}
			if i < len(e.Ages) {
				hold.Age = e.Ages[i]
			}
			c.Holds = append(c.Holds, hold)
		}
		for i, owner := range e.Places {
			c := of(owner, e.PlaceLabels[i])
			c.Waits = append(c.Waits, Wait{e, owner, i + 1, dead(e.Name, owner)})
		}
	}
	for _, circle := range circles {
		for _, s := range circle {
			if c := byID[ClientID(s.Waiter)]; c != nil { // nil if the lock was not kept
				c.InCircle = true
			}
		}
	}
	all := make([]Client, 0, len(byID))
	for _, c := range byID {
		slices.SortStableFunc(c.Holds, func(a, b Hold) int { return ByTrouble(a.Entry, b.Entry) })
		slices.SortStableFunc(c.Waits, func(a, b Wait) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Client) int { return strings.Compare(a.ID, b.ID) })
	return all
}
