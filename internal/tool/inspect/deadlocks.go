package inspect

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

const (
	// mostSuspects limits the locks among which circles are searched for, and mostPlaces the places that a scan reads.
	mostSuspects            = 10_000
	mostPlaces, wholePlaces = mostSuspects * CirclePlaces, 20_000
	// mostFollowed, mostQueues, mostScanned and followFor limit CirclesAmong: the locks that it follows, and the queues,
	// keys and time of its scan.
	mostFollowed, mostQueues, mostScanned = 1000, mostSuspects, 1_000_000
	followFor                             = 4 * time.Second
)

// ErrCut means that a search for circles did not see all locks.
var ErrCut = errors.New("the search for deadlocks was cut off: there are too many locks or keys")

// Suspects are the locks of a scan that may be part of circles. The zero value is empty.
type Suspects struct {
	locks []*Lock
	cut   bool
}

// Add adds a lock if its holders may wait for other locks.
func (s *Suspects) Add(l *Lock) {
	if !l.Contended() || !slices.ContainsFunc(l.Holders, func(h Holder) bool { return h.Inner != nil || isThread(bareOwner(h.Owner)) }) {
		return
	}
	if s.cut = s.cut || len(s.locks) == mostSuspects || l.Queue > 0 && l.Places == nil; len(s.locks) == mostSuspects {
		return
	}
	small := *l
	small.Places, small.PlaceLabels, small.Next = nil, nil, ""
	for _, owner := range l.Places[:min(len(l.Places), CirclePlaces)] {
		if isThread(owner) {
			small.Places = append(small.Places, owner)
		}
	}
	s.locks = append(s.locks, &small)
}

// Circles returns the certain circles. If there may be any, it reads their locks again for up to 8 s. With ErrCut, there
// may be more.
func (s *Suspects) Circles(ctx context.Context, srv *connect.Server) ([]Circle, error) {
	certain, err := circlesOf(ctx, srv, s.locks)
	if err == nil && s.cut {
		err = ErrCut
	}
	return certain, err
}

// CircleReader reads the locks of circles again.
type CircleReader struct {
	Client  *redlatch.Client
	Dial    connect.Dialer
	Cluster bool
}

func circlesOf(ctx context.Context, srv *connect.Server, locks []*Lock) (certain []Circle, err error) {
	found := FindCircles(locks, nobody)
	if len(found) == 0 {
		return nil, nil
	}
	client, err := srv.Open(ctx, redlatch.WithLabel(""))
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	engine.EngineOf(client).AnyName = true
	r, confirmation := CircleReader{client, srv.Dial, srv.IsCluster()}, Confirmation{}
	for began := time.Now(); len(found) > 0; {
		if found, err = r.Again(ctx, found); err != nil {
			return nil, err
		}
		var pending bool
		if certain, pending = confirmation.Confirm(found); !pending || time.Since(began) > confirmFor {
			break
		}
		if err := Pause(ctx, Interval); err != nil {
			return nil, err
		}
	}
	return certain, nil
}

// CirclesAmong returns the certain circles that locks with waiters lead to. It may return ErrCut.
func CirclesAmong(ctx context.Context, srv *connect.Server, names []string) ([]Circle, error) {
	var f follower
	following, cancel := context.WithTimeoutCause(ctx, followFor, ErrCut)
	defer cancel()
	locks, err := f.follow(following, srv, names)
	if err != nil {
		return nil, err
	}
	return circlesOf(ctx, srv, locks)
}

// follower follows the waits of holders.
type follower struct {
	seed    maphash.Seed
	waits   map[uint64][]string // the locks that each thread is queued for; nil before the scan
	queues  int
	scanned int
}

// follow returns locks, the locks for which their holders wait, and so on.
func (f *follower) follow(ctx context.Context, srv *connect.Server, names []string) (all []*Lock, err error) {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for next := names; len(next) > 0; {
		var locks []*Lock
		if err := connect.Use(ctx, srv.Dial, func(c redis.Conn) (err error) {
			locks, err = (&scan{Request: Request{Conn: c, Labels: c, Places: CirclePlaces, NoLabels: true}}).read(ctx, next, true)
			return err
		}); err != nil {
			return nil, err
		}
		waits, err := f.waitsOf(ctx, srv, locks)
		if err != nil {
			return nil, err
		}
		next = slices.DeleteFunc(waits, func(to string) bool {
			was := known[to]
			known[to] = true
			return was
		})
		if all = append(all, locks...); len(known) > mostFollowed+len(names) {
			return nil, ErrCut
		}
	}
	return all, nil
}

// waitsOf returns the locks for which the holders wait. It scans all queues when it needs those of the first thread.
func (f *follower) waitsOf(ctx context.Context, srv *connect.Server, locks []*Lock) (names []string, err error) {
	for _, l := range locks {
		for _, h := range l.blockers(false) {
			if h.Inner != nil {
				names = append(names, h.Inner.Lock)
			}
			owner := bareOwner(h.Owner)
			if !isThread(owner) {
				continue
			}
			if f.waits == nil {
				if err := f.scanAll(ctx, srv); err != nil {
					return nil, err
				}
			}
			names = append(names, f.waits[maphash.String(f.seed, owner)]...)
		}
	}
	return names, nil
}

func (f *follower) scanAll(ctx context.Context, srv *connect.Server) error {
	f.seed, f.waits = maphash.MakeSeed(), map[uint64][]string{}
	masters, err := srv.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, m := range masters { // another one may have failed
		err := connect.Use(ctx, m.Dial, func(c redis.Conn) error { return f.scan(ctx, c) })
		if errors.Is(err, ErrCut) || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (f *follower) scan(ctx context.Context, c redis.Conn) error {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	s := &scan{Request: Request{Conn: c, Progress: func(float64) {
		if f.scanned += step; f.scanned > mostScanned {
			cut(ErrCut)
		}
	}}}
	return s.pass(ctx, pass{queuePrefix + "*", "list", func(key string) (string, bool) { return lockOf(key), true },
		func(_ context.Context, names []string) ([]*Lock, error) { return nil, f.take(c, names) }})
}

func (f *follower) take(c redis.Conn, names []string) error {
	if f.queues += len(names); f.queues > mostQueues {
		return ErrCut
	}
	calls := make([]call, len(names))
	for i, name := range names {
		calls[i] = command("LRANGE", codec.QueueKey(name), 0, CirclePlaces-1)
	}
	replies, err := ask(c, calls)
	for i, reply := range replies {
		places, _ := redis.Strings(reply, nil) // none if refused
		for _, owner := range places {
			if isThread(owner) {
				key := maphash.String(f.seed, owner)
				f.waits[key] = append(f.waits[key], names[i])
			}
		}
	}
	return err
}

func nobody(string, string) bool { return false }

// Again finds the circles among the locks of circles, as they are now, omitting those with dead waiters.
func (r *CircleReader) Again(ctx context.Context, found []Circle) ([]Circle, error) {
	var names []string
	for _, c := range found {
		for _, s := range c {
			names = append(names, s.Lock)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var locks []*Lock
	err := connect.Use(ctx, r.Dial, func(c redis.Conn) (err error) {
		locks, err = (&scan{Request: Request{Conn: c, Labels: c, Places: CirclePlaces}}).read(ctx, names, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.alive(ctx, FindCircles(locks, nobody))
}

// alive drops circles with a place in a queue that has no subscriber. Where subscribers cannot be counted, it drops all
// circles with places.
func (r *CircleReader) alive(ctx context.Context, found []Circle) (living []Circle, err error) {
	var places []Place
	for _, c := range found {
		for _, s := range c {
			if s.Queued() {
				places = append(places, Place{s.Lock, s.Waiter})
			}
		}
	}
	counts, _ := Subscribers(ctx, r.Client, r.Cluster, places)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	present := map[Place]bool{}
	for i, n := range counts {
		present[places[i]] = n > 0
	}
	for _, c := range found {
		if !slices.ContainsFunc(c, func(s Step) bool { return s.Queued() && !present[Place{s.Lock, s.Waiter}] }) {
			living = append(living, c)
		}
	}
	return living, nil
}
