package engine

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// lockID is a lock of one kind.
type lockID struct{ kind, key string }

// Room is where one process's waiters for one fair lock wait together. Each has
// its own place in the queue on the server and listens to its own channel; what
// they share is the asking: the first in the room asks Redis now and then, for all
// of them, and when the answer says that another one's turn has come, tells it.
//
// Get one from [Engine.Room], which also takes a seat in it. Whoever has a seat
// leaves it exactly once.
type Room struct {
	id    lockID
	rooms *Registry

	// What keeps the places of those in it; see keep.
	engine *Engine
	name   string // the lock's, as the first caller gave it
	queue  protocol.Queue
	hurry  chan struct{} // receives when the next heartbeat is due at once

	mu          sync.Mutex // guards what follows; held for a few instructions only
	first, last *Seat
	byOwner     map[string]*Seat
	next        time.Time   // when the first asks again
	kept        bool        // keep runs, or will
	start       *time.Timer // of keep
	gap         bool        // messages may have been missed
}

// Seat is one waiter's seat in a room.
type Seat struct {
	// Call receives when it is this waiter's turn to ask Redis, at once.
	Call chan struct{}
	// Lead receives when this waiter has become the first in the room.
	Lead chan struct{}

	room       *Room
	waiter     protocol.Waiter
	place      int64
	twin       bool // there is, or was, another seat of this owner
	hears      bool // its waiter listens to its channel
	prev, next *Seat
}

// Room seats a waiter that the server has queued for the lock called name, behind
// the others.
func (e *Engine) Room(name string, p protocol.Protocol, w protocol.Waiter) *Seat {
	id := lockID{p.Kind(), p.Key()}
	r, _ := e.rooms.Join(id, func() any {
		r := &Room{id: id, rooms: &e.rooms, byOwner: map[string]*Seat{}, engine: e, name: name, hurry: make(chan struct{}, 1)}
		r.queue, _ = p.(protocol.Queue)
		return r
	}).(*Room) // it is one
	e.spares.sat(e, id, 1)
	s := &Seat{Call: make(chan struct{}, 1), Lead: make(chan struct{}, 1), room: r, waiter: w, place: e.places.Add(1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.byOwner[w.Owner]; other != nil {
		other.twin, s.twin = true, true
	}
	r.byOwner[w.Owner] = s
	r.push(s)
	r.beginKeeping()
	return s
}

// push puts a seat at the end, mu held.
func (r *Room) push(s *Seat) {
	s.prev, s.next = r.last, nil
	if r.last != nil {
		r.last.next = s
	} else {
		r.first = s
	}
	r.last = s
}

// remove takes a seat out, mu held, and lets the one behind it lead if it did.
func (r *Room) remove(s *Seat) {
	led := r.first == s
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		r.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		r.last = s.prev
	}
	if led && r.first != nil {
		signal(r.first.Lead)
	}
}

// Hears says whether the seat's waiter listens to its channel, acknowledged.
func (s *Seat) Hears(yes bool) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.hears = yes
}

// Gap says that messages for the seat's waiter may have been missed: for those of
// the others in the room, too.
func (s *Seat) Gap() {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gap {
		r.gap = true
		signal(r.hurry)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Leave gives the seat up. Others of the same owner are called.
func (s *Seat) Leave() {
	r := s.room
	r.mu.Lock()
	r.remove(s)
	if r.byOwner[s.waiter.Owner] == s {
		delete(r.byOwner, s.waiter.Owner)
	}
	r.endKeeping()
	r.mu.Unlock()
	s.CallTwins()
	r.engine.spares.sat(r.engine, r.id, -1)
	r.rooms.Leave(r.id)
}

// CallTwins makes others of the same owner ask. They have one place in the queue
// with this seat, which is gone when this one has given it up, or holds the lock.
func (s *Seat) CallTwins() {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.twin {
		return
	}
	for other := r.first; other != nil; other = other.next {
		if other.waiter.Owner == s.waiter.Owner && other != s {
			r.byOwner[s.waiter.Owner] = other
			signal(other.Call)
		}
	}
}

// Back moves the seat behind all others: the server has queued its waiter anew.
func (s *Seat) Back() {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == s {
		return
	}
	r.remove(s)
	r.push(s)
}

// Place returns a number that is higher for seats that were taken later.
func (s *Seat) Place() int64 { return s.place }

// Leads reports whether the seat is the first in its room.
func (s *Seat) Leads() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.room.first == s
}

// Plan says when the first in the room asks again, whoever that is then.
func (s *Seat) Plan(at time.Time) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.next = at
}

// Planned returns when the first in the room is to ask again.
func (s *Seat) Planned() time.Time {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.room.next
}

// Tell makes another waiter ask, if it has a seat in this room.
func (s *Seat) Tell(owner string) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if other := s.room.byOwner[owner]; other != nil && other != s {
		signal(other.Call)
	}
}

// TellFirst makes the first in the room ask, for all.
func (s *Seat) TellFirst() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	signal(s.room.first.Call)
}
