package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	shownCircles = 16
	triedOwners  = 256 // number of owners or clients to search for circles
)

// Step is a part of a circle: Waiter is queued for Lock, which Holder holds.
type Step struct{ Lock, Waiter, Holder, WaiterLabel, HolderLabel string }

// Circle is a circular wait of at least two steps. The holder in each step is the waiter in the
// next one, and the holder in the last step is the waiter in the first.
type Circle struct {
	Steps []Step
	// Sure is set if the same owners held and waited in two scans. Otherwise only the clients are
	// known to be the same. A Redisson owner is a single thread, which cannot release anything
	// while it is waiting.
	Sure bool
}

// waits contains the steps from each waiter, which is an owner or its client, to the holders.
type waits map[string][]Step

// waitsOf leaves out dead waiters. who returns the key of an owner.
func waitsOf(entries []Entry, dead func(lock, owner string) bool, who func(owner string) string) waits {
	all := waits{}
	for i := range entries {
		e := &entries[i]
		for n, waiter := range e.Places {
			if len(e.Holders) == 0 || dead(e.Name, waiter) {
				continue
			}
			for _, h := range e.Holders {
				if from := who(waiter); from != who(h.Owner) {
					all[from] = append(all[from], Step{e.Name, waiter, h.Owner, e.PlaceLabels[n], h.Label})
				}
			}
		}
	}
	all.prune(who)
	return all
}

// prune drops waiters whose holders are not waiting, until each remaining waiter is waiting for
// another one.
func (all waits) prune(who func(owner string) string) {
	left := map[string]int{}        // number of steps to other waiters
	behind := map[string][]string{} // who is waiting for each waiter
	var ends []string
	for from, steps := range all {
		for _, s := range steps {
			if to := who(s.Holder); all[to] != nil {
				left[from]++
				behind[to] = append(behind[to], from)
			}
		}
		if left[from] == 0 {
			ends = append(ends, from)
		}
	}
	for ; len(ends) > 0; ends = ends[1:] {
		delete(all, ends[0])
		for _, from := range behind[ends[0]] {
			if left[from]--; left[from] == 0 {
				ends = append(ends, from)
			}
		}
	}
}

// circlesOf returns each waiter's shortest circle. Each circle is returned once.
func circlesOf(entries []Entry, dead func(lock, owner string) bool, who func(owner string) string) (found []Circle) {
	all := waitsOf(entries, dead, who)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	part := map[string]bool{}
	for _, name := range names[:min(len(names), triedOwners)] {
		if len(found) >= shownCircles || part[name] {
			continue
		}
		c := all.shortest(name, who)
		for _, s := range c.Steps {
			part[who(s.Waiter)] = true
		}
		if len(c.Steps) > 0 {
			found = append(found, c)
		}
	}
	return found
}

// shortest returns a circle without steps if it does not find a circle.
func (all waits) shortest(name string, who func(owner string) string) Circle {
	came := map[string]Step{}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, s := range all[next[0]] {
			to := who(s.Holder)
			if _, known := came[to]; known {
				continue
			}
			if came[to] = s; to == name {
				return circleOf(name, came, who)
			}
			next = append(next, to)
		}
	}
	return Circle{}
}

func circleOf(name string, came map[string]Step, who func(owner string) string) (c Circle) {
	for to := name; len(c.Steps) == 0 || to != name; {
		s := came[to]
		c.Steps = append(c.Steps, s)
		to = who(s.Waiter)
	}
	slices.Reverse(c.Steps)
	return c
}

func (c *Circle) key() string {
	var parts []string
	for _, s := range c.Steps {
		parts = append(parts, s.Lock+"\x00"+s.Waiter)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\x00")
}

// findCircles finds circular waits, and marks the locks in definite circles. A dead waiter is not
// part of any circle. If a waiter may be dead, its circle is only possible.
func (l *Locks) findCircles(m *memory, count counter) {
	before := m.circles
	m.circles = map[string]bool{}
	locks, asked := map[string]bool{}, map[place]bool{}
	for _, c := range l.living(m, count, asked, bareOwner) {
		m.circles[c.key()] = true
		if c.Sure = before[c.key()] && !m.doubts(&c); !c.Sure {
			l.pending = true
			continue
		}
		l.Circles = append(l.Circles, c)
		for _, s := range c.Steps {
			locks[s.Lock] = true
		}
	}
	for _, c := range l.living(m, count, asked, ClientID) {
		switch {
		case !slices.ContainsFunc(c.Steps, func(s Step) bool { return !locks[s.Lock] }): // already found above
		case m.doubts(&c):
			l.pending = true
		default:
			l.Circles = append(l.Circles, c)
		}
	}
	for i := range l.Entries {
		if e := &l.Entries[i]; locks[e.Name] {
			e.Trouble = InCircle
		}
	}
	l.sort()
}

// living returns the circles without dead waiters. It counts the subscribers of waiters that are
// not in asked.
func (l *Locks) living(m *memory, count counter, asked map[place]bool, who func(owner string) string) []Circle {
	for {
		found := circlesOf(l.Entries, m.isDead, who)
		var more []place
		for i := range found {
			for _, s := range found[i].Steps {
				if at := (place{Lock: s.Lock, Owner: s.Waiter}); !asked[at] && len(asked) < counted {
					asked[at] = true
					more = append(more, at)
				}
			}
		}
		if len(more) == 0 {
			return found
		}
		l.count(m, count, more)
	}
}

func (m *memory) doubts(c *Circle) bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool {
		_, absent := m.seen.presence.known(s.Lock, s.Waiter)
		return absent
	})
}

func bareOwner(owner string) string {
	bare, _ := protocol.WriterOf(owner)
	return bare
}

func (l *Locks) around(lock *Lock) (circles []Circle) {
	for _, c := range l.Circles {
		if slices.ContainsFunc(c.Steps, lock.has) {
			circles = append(circles, c)
		}
	}
	return circles
}

func (l *Locks) ahead(lock *Lock) (steps []Step) {
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
			steps = append(steps, Step{wait.Name, wait.Owner, by.Owner, client.Label, by.Label})
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
	for i := range circles {
		for _, s := range circles[i].Steps {
			if c := byID[ClientID(s.Waiter)]; c != nil { // nil if the lock was not kept
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
