package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// placesOfQueue is how many places of each queue a scan reads.
const placesOfQueue = 32

// Client is what one client holds and waits for, as a scan has found it.
type Client struct {
	// ID is the client's UUID, or the owner itself where that has none.
	ID string
	inspect.Client
	// Label is the client's label, empty when it has none.
	Label string
	// Holds are the locks that it holds, those with most trouble first, Waits its places in
	// queues, by the lock's name.
	Holds []Hold
	Waits []Wait
	// InCircle is whether it is part of a circle that is sure.
	InCircle bool
}

// Hold is a lock that a client holds. Its Age is that of this hold.
type Hold struct {
	Entry

	// Owner and Count are as they stand in Redis.
	Owner, Count string
}

// Wait is a place in the queue of a lock.
type Wait struct {
	Entry

	// Owner is as it stands in Redis, Position the place, 1 for the next one.
	Owner    string
	Position int
	// Dead is whether the waiter is known to be dead: it is not known of all.
	Dead bool
}

// ClientID returns what tells the clients of owners apart: the UUID, which all owners of a client
// have, or the owner itself where that has none.
func ClientID(owner string) string {
	bare, _ := listing.Bare(owner)
	parsed, err := redlatch.ParseOwner(bare)
	if err != nil {
		return owner
	}
	return parsed.Client().String()
}

// Client returns the client with an ID, nil when it neither holds nor waits for anything.
func (l *Locks) Client(id string) *Client {
	i, found := slices.BinarySearchFunc(l.Clients, id, func(c Client, id string) int { return strings.Compare(c.ID, id) })
	if !found {
		return nil
	}
	return &l.Clients[i]
}

// clientsOf returns the clients that hold or wait for locks, by their IDs.
func clientsOf(entries []Entry, circles []Circle, dead func(lock, owner string) bool) []Client {
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
			hold := Hold{e, h.Owner, h.Count}
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
	for i := range circles {
		for _, s := range circles[i].Steps {
			if c := byID[ClientID(s.Waiter)]; c != nil { // of a lock that is kept
				c.InCircle = c.InCircle || circles[i].Sure
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
