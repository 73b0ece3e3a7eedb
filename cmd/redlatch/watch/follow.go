package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
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
	client   *redlatch.Client
	labels   *labelConn
	channels *follow.ChannelSubscriber // the channels of locks in a cluster, nil elsewhere
	enc      *json.Encoder

	locks         map[string]*followed
	failed        bool // the last look had no answer
	limitReported bool // the limit of locks was reported
	searchFailed  bool // that locks cannot be searched for was reported
}

// followed is a lock that is watched.
type followed struct {
	follow.Lock
	idle time.Time // since when it is free, zero: it is not
}

func newFollower(w *watcher, client *redlatch.Client, side *labelConn) *follower {
	return &follower{
		watcher: w, client: client, labels: side, enc: json.NewEncoder(w.out), locks: map[string]*followed{},
	}
}

// run handles each message, each lock that is found, and looks at all locks now and then,
// until ctx ends. A server that does not answer at first is an error; later it is reported
// and waited for.
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
			f.receive(&m)
			for more := true; more; { // what is there already costs no look of its own
				select {
				case m := <-heard:
					f.receive(&m)
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

// find adds the locks that a search has found. An error is reported once.
func (f *follower) find(ctx context.Context, m discovery) {
	switch {
	case m.err != nil && !f.searchFailed:
		f.searchFailed = true
		f.message("locks that are taken without a message are not found: %v", m.err)
	case m.err == nil && f.locks[m.name] == nil && f.add(m.name):
		f.try(ctx, f.locks[m.name])
	}
}

// add begins to watch a lock, unless there are too many.
func (f *follower) add(name string) bool {
	if len(f.locks) >= watched {
		if !f.limitReported {
			f.message("more than %d locks match: others than these are not watched", watched)
		}
		f.limitReported = true
		return false
	}
	f.locks[name] = &followed{Lock: follow.Lock{Name: name}}
	return true
}

// listen subscribes to the channels of a lock whose queue was seen.
func (f *follower) listen(ctx context.Context, name string, queue []string) {
	if f.channels != nil {
		f.channels.Follow(ctx, name, queue)
	}
}

// drop ends the watching of a lock.
func (f *follower) drop(name string) {
	delete(f.locks, name)
	if f.channels != nil {
		f.channels.Forget(name)
	}
}

// receive handles a message.
func (f *follower) receive(m *follow.Message) {
	switch {
	case m.Gap != nil:
		f.message("messages may be missed for a while: %v", m.Gap)
		return
	case m.Name == "":
		f.message("messages are heard again")
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
	l.Receive(m)
	if m.Owner != "" {
		f.print(&follow.Event{At: m.At, Name: m.Name, What: follow.Woken, Owner: m.Owner, Lease: -1}, nil)
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

// try looks at a lock. An error of the server is reported once.
func (f *follower) try(ctx context.Context, l *followed) {
	err := f.look(ctx, l)
	if ctx.Err() != nil {
		return
	}
	if err != nil && !f.failed {
		f.message("%v", err)
	}
	if err == nil && f.failed {
		f.message("the server answers again")
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
	s := stateOf(in, &shape)
	f.listen(ctx, l.Name, s.Queue)
	if events := l.Look(s); len(events) > 0 {
		f.printAll(ctx, events)
	}
	switch {
	case !l.Idle():
		l.idle = time.Time{}
	case l.idle.IsZero():
		l.idle = s.At
	}
	return nil
}

// stateOf is a lock as it was just seen.
func stateOf(in *admin.Inspection, shape *listing.Shape) follow.State {
	s := follow.State{At: time.Now(), Lease: in.TTL, Waiting: in.Waiting}
	s.Mode = shape.Mode
	for i, h := range shape.Holders {
		if i == 0 {
			s.Owner, s.Count = h.Owner, h.Count
			continue
		}
		s.Others = append(s.Others, follow.Holder{Owner: h.Owner, Count: h.Count})
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

// printAll tells events with the labels of those they are about.
func (f *follower) printAll(ctx context.Context, events []follow.Event) {
	var owners []string
	for i := range events {
		owners = append(owners, events[i].Owner)
	}
	labels := f.labels.labels(ctx, owners)
	for i := range events {
		f.print(&events[i], labels)
	}
}

func (f *follower) print(e *follow.Event, labels map[string]string) {
	if f.json {
		_ = f.enc.Encode(eventJSONOf(e, labels[e.Owner])) // a closed output has ended the command, too
		return
	}
	fmt.Fprintln(f.out, cli.Fit(f.out, eventLine(e, labels[e.Owner], !f.single)))
}

// message writes a message to standard error.
func (w *watcher) message(format string, args ...any) {
	cli.Messagef(w.errors, format, args...)
}
