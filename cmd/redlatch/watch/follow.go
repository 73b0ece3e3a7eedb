package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// watched is how many locks are watched at most.
	watched = 1000
	// followedPlaces is how many of the first in a queue are followed: what a look costs
	// the server must not grow with the queue.
	followedPlaces = 256
	// forgetAfter is for how long a lock of a pattern is watched that is free.
	forgetAfter = time.Minute
)

// follower looks at locks and tells what has happened. It is for one goroutine.
type follower struct {
	*watcher
	client *redlatch.Client
	side   *sideline
	posts  *follow.Posts // where messages are heard in a cluster, nil elsewhere
	enc    *json.Encoder

	locks  map[string]*followed
	failed bool // the last look had no answer
	full   bool // it was told that there are too many locks
	blind  bool // it was told that none can be searched for
}

// followed is a lock that is watched.
type followed struct {
	follow.Lock
	idle time.Time // since when it is free, zero: it is not
}

func newFollower(w *watcher, client *redlatch.Client, side *sideline) *follower {
	return &follower{
		watcher: w, client: client, side: side, enc: json.NewEncoder(w.out), locks: map[string]*followed{},
	}
}

// run looks after each message, at each lock that is found, and at all locks now and
// then, until ctx ends. A server that does not answer at first is an error; later it
// is told of and waited for.
func (f *follower) run(ctx context.Context, heard <-chan follow.Message, found <-chan discovery) error {
	if f.single {
		f.add(f.pattern)
		f.listen(ctx, f.pattern, nil) // before the look, so that nothing is missed between
		if err := f.look(ctx, f.locks[f.pattern]); err != nil {
			return err
		}
	}
	next := time.NewTimer(inspect.Interval)
	defer next.Stop()
	for {
		select {
		case m := <-heard:
			f.hear(&m)
			for more := true; more; { // what is there already costs no look of its own
				select {
				case m := <-heard:
					f.hear(&m)
				default:
					more = false
				}
			}
			f.lookAt(ctx, func(l *followed) bool { return l.Unseen() })
		case m := <-found:
			f.find(ctx, m)
		case <-next.C:
			began := time.Now()
			f.lookAt(ctx, func(*followed) bool { return true })
			f.forget(began)
			next.Reset(max(inspect.Interval, listing.PauseFactor*time.Since(began)))
		case <-ctx.Done():
			return nil
		}
	}
}

// find takes in what a search has found. That it does not work is told once.
func (f *follower) find(ctx context.Context, m discovery) {
	switch {
	case m.err != nil && !f.blind:
		f.blind = true
		f.say("locks that are taken without a message are not found: %v", m.err)
	case m.err == nil && f.locks[m.name] == nil && f.add(m.name):
		f.try(ctx, f.locks[m.name])
	}
}

// add begins to watch a lock, unless there are too many.
func (f *follower) add(name string) bool {
	if len(f.locks) >= watched {
		if !f.full {
			f.say("more than %d locks match: others than these are not watched", watched)
		}
		f.full = true
		return false
	}
	f.locks[name] = &followed{Lock: follow.Lock{Name: name}}
	return true
}

// listen listens for a lock whose queue was seen.
func (f *follower) listen(ctx context.Context, name string, queue []string) {
	if f.posts != nil {
		f.posts.Follow(ctx, name, queue)
	}
}

// drop ends the watching of a lock.
func (f *follower) drop(name string) {
	delete(f.locks, name)
	if f.posts != nil {
		f.posts.Forget(name)
	}
}

// hear takes a message in.
func (f *follower) hear(m *follow.Message) {
	switch {
	case m.Gap != nil:
		f.say("messages may be missed for a while: %v", m.Gap)
		return
	case m.Name == "":
		f.say("messages are heard again")
		return
	}
	if f.single {
		m.Name = f.pattern
	}
	l := f.locks[m.Name]
	if l == nil {
		if !f.add(m.Name) {
			return
		}
		l = f.locks[m.Name]
	}
	l.Hear(m)
	if m.Owner != "" {
		f.tell(&follow.Event{At: m.At, Name: m.Name, What: follow.Woken, Owner: m.Owner, Lease: -1}, nil)
	}
}

// lookAt looks at those locks that are chosen.
func (f *follower) lookAt(ctx context.Context, chosen func(*followed) bool) {
	for _, l := range f.locks {
		if ctx.Err() != nil {
			return
		}
		if chosen(l) {
			f.try(ctx, l)
		}
	}
}

// try looks at a lock. That the server does not answer is told once.
func (f *follower) try(ctx context.Context, l *followed) {
	err := f.look(ctx, l)
	if ctx.Err() != nil {
		return
	}
	if err != nil && !f.failed {
		f.say("%v", err)
	}
	if err == nil && f.failed {
		f.say("the server answers again")
	}
	f.failed = err != nil
}

// look looks at a lock and tells what has happened to it.
func (f *follower) look(ctx context.Context, l *followed) error {
	in, err := inspect.Lock(ctx, f.client, l.Name, followedPlaces)
	switch {
	case errors.Is(err, redlatch.ErrWrongType) && !f.single:
		f.drop(l.Name)
		return nil
	case errors.Is(err, redlatch.ErrWrongType):
		return inspect.WrongType(ctx, f.srv, l.Name)
	case err != nil:
		return f.srv.Problem(err)
	}
	shape := inspect.ShapeOfInspection(in)
	switch {
	case shape.Odd != "" && !f.single:
		f.drop(l.Name)
		return nil
	case shape.Odd != "":
		return inspect.NotLockHash(l.Name, shape.Odd)
	}
	s := sightOf(in, &shape)
	f.listen(ctx, l.Name, s.Queue)
	if events := l.Look(s); len(events) > 0 {
		f.tellAll(ctx, events)
	}
	switch {
	case !l.Idle():
		l.idle = time.Time{}
	case l.idle.IsZero():
		l.idle = s.At
	}
	return nil
}

// sightOf is a lock as it was just seen.
func sightOf(in *rlock.Inspection, shape *listing.Shape) follow.Sight {
	s := follow.Sight{At: time.Now(), Lease: in.TTL, Waiting: in.Waiting}
	if len(shape.Holders) > 0 { // of several readers it is the first
		s.Owner, s.Count = shape.Holders[0].Owner, shape.Holders[0].Count
	}
	for _, q := range in.Queue {
		s.Queue = append(s.Queue, q.Text)
	}
	return s
}

// forget ends the watching of locks that have been free for a while. When they are
// taken again, a message or a search finds them.
func (f *follower) forget(now time.Time) {
	for name, l := range f.locks {
		if !f.single && !l.idle.IsZero() && now.Sub(l.idle) > forgetAfter {
			f.drop(name)
		}
	}
}

// tellAll tells events with the labels of those they are about.
func (f *follower) tellAll(ctx context.Context, events []follow.Event) {
	var owners []string
	for i := range events {
		owners = append(owners, events[i].Owner)
	}
	labels := f.side.labels(ctx, owners)
	for i := range events {
		f.tell(&events[i], labels)
	}
}

func (f *follower) tell(e *follow.Event, labels map[string]string) {
	if f.json {
		_ = f.enc.Encode(toldOf(e, labels[e.Owner])) // who does not read any more has ended this, too
		return
	}
	fmt.Fprintln(f.out, output.Fit(f.out, eventLine(e, labels[e.Owner], !f.single)))
}

// say tells something besides what was asked for.
func (w *watcher) say(format string, args ...any) {
	output.Messagef(w.complain, format, args...)
}
