package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// collector is not safe for concurrent use.
type collector struct {
	server  *connect.Server
	by      groups
	pattern string // for names; "" matches all
	// nameAfter is the age from which a holder is named. Each name is another time series.
	nameAfter time.Duration

	scanned time.Duration // how long the steps of the last look took, without those that failed

	seen   *seen
	absent absentees // at the last look
	began  []int64   // new holds since the first look, by group
}

type look struct {
	*collector
	figures

	now      time.Time
	waiters  []waiter // waiters whose subscribers must be counted
	suspects inspect.Suspects
}

// look returns the figures, or an error from connect.Server.Problem. notCounted is the reason why
// the dead waiters are unknown, or nil.
func (c *collector) look(ctx context.Context) (found *figures, notCounted, err error) {
	if c.seen == nil {
		c.seen, c.began = newSeen(), make([]int64, len(c.by.names))
	}
	began := time.Now()
	c.scanned = 0
	l := &look{collector: c, now: began}
	for _, name := range c.by.names {
		l.groups = append(l.groups, group{name: name, held: map[inspect.Kind]int64{}})
	}
	unread, err := inspect.RunOnMasters(ctx, c.server, inspect.Request{
		Pattern: c.pattern, Found: l.lock, Places: placesOfQueue, NoLabels: true,
		Looked: func(keys int, took time.Duration) {
			l.keys += int64(keys)
			l.scanned += took
		},
	})
	if err = cmp.Or(err, unread.Away); err == nil { // if a master is missing, its locks would seem to be gone
		notCounted, err = l.findDead(ctx)
	}
	if err == nil {
		err = l.nameHolders(ctx)
	}
	c.seen.turn(err == nil)
	if err != nil {
		return nil, nil, err
	}
	for i := range c.began {
		c.began[i] += l.groups[i].began
		l.groups[i].began = c.began[i]
	}
	l.unreadable = int64(unread.Keys)
	l.at = time.Now()
	l.took = l.at.Sub(began)
	l.findCircles(ctx)
	all := l.figures // without the locks
	return &all, notCounted, nil
}

func (l *look) lock(lock *inspect.Lock) error {
	l.suspects.Add(lock)
	at := l.by.of(lock.Name)
	g := &l.groups[at]
	g.add(lock)
	for _, h := range lock.Holders {
		since, isNew, ok := l.seen.hold(lock, h.Owner, l.now)
		if !ok {
			l.untracked++
		}
		if isNew {
			g.began++
		}
		if age := l.now.Sub(since); g.holder == "" || age > g.oldest {
			g.oldest, g.holder = age, h.Owner
		}
	}
	unchecked := lock.Queue
	for _, owner := range lock.Places {
		if len(l.waiters) < placesOfAll && len(lock.Name)+len(owner) <= longestPlace {
			l.waiters = append(l.waiters, waiter{lock.Name, owner, at})
			unchecked--
		}
	}
	l.unchecked += max(0, unchecked) // the queue may have grown after its length was read
	return nil
}

type group struct {
	name string
	held map[inspect.Kind]int64

	withoutTTL int64         // held without a lease
	stuck      int64         // free, but with a queue
	deadlocked int64         // in a circle of waits
	mixed      int64         // with waiters for another kind of lock
	queued     int64         // queued owners
	longest    int64         // length of the longest queue
	dead       int64         // owners without a subscriber at this look and the previous one
	waiting    int64         // connections waiting for locks without a queue; a process has only one
	oldest     time.Duration // age of the oldest hold
	holder     string        // its owner; in figures, its client's label, or library and ID
	began      int64         // new holds since the first look
}

type figures struct {
	at     time.Time     // when the look ended
	took   time.Duration // without the confirmation of circles
	groups []group       // in the order of groups.names

	keys       int64 // hashes and queues that were read
	unreadable int64 // keys that the user may not read
	unchecked  int64 // queued owners that were not checked for a subscriber
	untracked  int64 // holds beyond maxHolds

	circlesKnown bool
}

// nameHolders reads one label per group.
func (l *look) nameHolders(ctx context.Context) error {
	var owners []string
	for i := range l.groups {
		g := &l.groups[i]
		if g.oldest < l.nameAfter {
			g.holder = ""
		}
		if g.holder != "" {
			owners = append(owners, g.holder)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	var labels map[string]string
	err := connect.Use(ctx, l.server.Dial, func(c redis.Conn) (err error) {
		labels, err = inspect.Labels(c, owners)
		return err
	})
	for i := range l.groups {
		g := &l.groups[i]
		if g.holder != "" {
			client, _, _ := strings.Cut(inspect.ShortOwner(g.holder), ":")
			g.holder = cmp.Or(labels[g.holder], client)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return l.server.Problem(err)
	}
	return nil
}

func (g *group) add(l *inspect.Lock) {
	switch {
	case len(l.Holders) > 0:
		g.held[l.Kind]++
		if l.TTL == redlatch.NoTTL {
			g.withoutTTL++
		}
	case l.Queue > 0:
		g.stuck++
	}
	if l.HasTwoKinds() {
		g.mixed++
	}
	g.queued += l.Queue
	g.longest = max(g.longest, l.Queue)
	g.waiting += l.Waiting
}

const (
	everything = "all"
	rest       = "other"

	maxGroups = 100
)

type groups struct {
	names    []string // unique, in order; the last one is for all other locks
	patterns []pattern
}

type pattern struct {
	group   int
	matches func(name string) bool
}

var groupName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// parseGroups adds the group "other" for locks that do not match any pattern. Other locks belong to
// the first group that matches.
func parseGroups(texts []string) (groups, error) {
	var g groups
	index := map[string]int{}
	for _, text := range texts {
		name, glob, found := strings.Cut(text, "=")
		switch {
		case !found || glob == "":
			return groups{}, fmt.Errorf("%s must have the form GROUP=PATTERN", sanitize.Word(text))
		case !groupName.MatchString(name):
			return groups{}, fmt.Errorf("%s is not a valid group name: use up to 63 letters, digits, and . _ -", sanitize.Word(name))
		case name == rest:
			return groups{}, errors.New(rest + " is reserved for locks that match no pattern: choose another name")
		}
		at, known := index[name]
		if !known {
			at = len(g.names)
			index[name] = at
			g.names = append(g.names, name)
		}
		g.patterns = append(g.patterns, pattern{at, inspect.Match(glob)})
	}
	if len(g.names) > maxGroups {
		return groups{}, fmt.Errorf("%d groups exceed the maximum of %d: each group adds time series", len(g.names), maxGroups)
	}
	if len(g.names) == 0 {
		return groups{names: []string{everything}}, nil
	}
	g.names = append(g.names, rest)
	return g, nil
}

func (g groups) of(name string) int {
	for _, p := range g.patterns {
		if p.matches(name) {
			return p.group
		}
	}
	return len(g.names) - 1
}

// maxHolds is the number of holds to remember. Two looks' worth takes about 20 MiB.
const maxHolds = 1 << 18

// seen remembers holds by lock and owner. If a Redisson thread releases and acquires a lock between
// two looks, that counts as one hold.
type seen struct {
	seed       maphash.Seed
	last, next map[uint64]time.Time
	looked     bool // this is not the first look
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed(), next: map[uint64]time.Time{}} }

// hold records a hold, and returns when it was first seen and whether it is new. It sets ok to
// false if there are too many holds.
func (s *seen) hold(l *inspect.Lock, owner string, now time.Time) (since time.Time, isNew, ok bool) {
	key := maphash.Comparable(s.seed, [2]string{l.Name, owner})
	since, known := s.last[key]
	if !known {
		since = now
	}
	if len(s.next) >= maxHolds {
		return since, false, false
	}
	s.next[key] = since
	return since, !known && s.looked, true
}

func (s *seen) turn(complete bool) {
	if complete {
		s.last, s.looked = s.next, true
	}
	s.next = make(map[uint64]time.Time, len(s.last))
}

const (
	// placesOfQueue limits how many places at the head of a queue are checked. Those block the
	// rest.
	placesOfQueue  = 200
	placesOfAll    = 20_000
	channelsAtOnce = 1000
	// longestPlace limits the bytes of a lock's name and an owner, because each is copied several times.
	longestPlace = 1024
)

type waiter struct {
	lock, owner string
	group       int
}

type absentees map[waiter]bool

// findDead requires two looks, because a live waiter may briefly lack a subscriber.
func (l *look) findDead(ctx context.Context) (notCounted, err error) {
	absent, err := l.withoutSubscriber(ctx, l.waiters)
	if errors.Is(err, admin.ErrNotCounted) {
		l.unchecked += int64(len(l.waiters))
		l.absent = nil
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	for w := range absent {
		if l.absent[w] {
			l.groups[w.group].dead++
		}
	}
	l.absent = absent
	return nil, nil
}

// withoutSubscriber queries the master first. It then also queries the replicas, to which Redisson
// may subscribe.
func (l *look) withoutSubscriber(ctx context.Context, waiters []waiter) (absentees, error) {
	if len(waiters) == 0 {
		return nil, nil
	}
	var suspects []waiter
	err := connect.Use(ctx, l.server.Dial, func(conn redis.Conn) error {
		for some := range slices.Chunk(waiters, channelsAtOnce) {
			channels := make([]string, len(some))
			for i, w := range some {
				channels[i] = protocol.OwnerChannel(w.lock, w.owner)
			}
			counts, err := connect.Listening(ctx, conn, channels...)
			if err != nil {
				return err
			}
			for i, n := range counts {
				if n == 0 {
					suspects = append(suspects, some[i])
				}
			}
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case connect.Denied(err):
		return nil, fmt.Errorf("%w: %w", admin.ErrNotCounted, err)
	case err != nil:
		return nil, l.server.Problem(err)
	}
	return l.everywhere(ctx, suspects)
}

// everywhere requires that suspects waiting for the same lock are adjacent.
func (l *look) everywhere(ctx context.Context, suspects []waiter) (absentees, error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	client, err := l.server.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	engine.EngineOf(client).AnyName = true // other clients may use names that are invalid here
	places := make([]inspect.Place, len(suspects))
	for i, w := range suspects {
		places[i] = inspect.Place{Lock: w.lock, Owner: w.owner}
	}
	counts, err := inspect.Subscribers(ctx, client, l.server.IsCluster(), places)
	if err != nil {
		return nil, err
	}
	absent := absentees{}
	for i, n := range counts {
		switch {
		case n < 0: // a cluster cannot have a lock with this name
			l.unchecked++
		case n == 0:
			absent[suspects[i]] = true
		}
	}
	return absent, ctx.Err()
}
