package show

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	watched = 1000
	// followedPlaces limits the places that one inspection reads.
	followedPlaces = 256
	forgetAfter    = time.Minute
)

// follower is not safe for concurrent use.
type follower struct {
	*watcher
	client   *redlatch.Client
	side     redis.Conn                // sends the commands for labels through the client
	channels *follow.ChannelSubscriber // nil outside of a cluster

	locks         map[string]*followed
	limitReported bool
	searchFailed  bool
}

type followed struct {
	follow.Lock
	idle time.Time // since when the lock has been free, or zero if it is not free
}

// run returns the error of the first inspection. It reports later errors and continues.
func (f *follower) run(ctx context.Context, heard <-chan follow.Message, found <-chan discovery) error {
	if f.single {
		f.add(f.pattern)
		f.listen(ctx, f.pattern, nil) // subscribe before the inspection, so that no change is missed in between
		if err := f.look(ctx, f.locks[f.pattern]); err != nil {
			return err
		}
	}
	if f.length > 0 { // starting when it is subscribed and has inspected the lock
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.length)
		defer cancel()
	}
	next := time.NewTimer(inspect.Interval)
	defer next.Stop()
	for {
		select {
		case m := <-heard:
			f.receive(&m)
			for more := true; more; {
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
			next.Reset(max(inspect.Interval, inspect.PauseFactor*time.Since(began)))
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *follower) find(ctx context.Context, m discovery) {
	switch {
	case m.err != nil && !f.searchFailed:
		f.searchFailed = true
		f.message("cannot find locks acquired without a message: %v", m.err)
	case m.err == nil && f.locks[m.name] == nil && f.add(m.name):
		f.try(ctx, f.locks[m.name])
	}
}

func (f *follower) add(name string) bool {
	if len(f.locks) >= watched {
		if !f.limitReported {
			f.message("more than %d locks match: only these are watched", watched)
		}
		f.limitReported = true
		return false
	}
	f.locks[name] = &followed{Lock: follow.Lock{Name: name}}
	return true
}

func (f *follower) listen(ctx context.Context, name string, queue []admin.Waiter) {
	if f.channels != nil {
		f.channels.Follow(ctx, name, queue)
	}
}

func (f *follower) drop(name string) {
	delete(f.locks, name)
	if f.channels != nil {
		f.channels.Forget(name)
	}
}

func (f *follower) receive(m *follow.Message) {
	switch {
	case m.Gap != nil:
		f.message("messages may be missed: %v", m.Gap)
		return
	case m.Name == "":
		f.message("messages arrive again")
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
		f.print(&follow.Event{At: m.At, Name: m.Name, What: follow.Woken, Owner: m.Owner, Lease: -1}, "")
	}
}

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

func (f *follower) try(ctx context.Context, l *followed) {
	if err := f.look(ctx, l); ctx.Err() == nil {
		f.looked(err)
	}
}

func (f *follower) look(ctx context.Context, l *followed) error {
	s, err := inspect.Read(ctx, f.client, l.Name, followedPlaces)
	other := (*inspect.NotLock)(nil)
	isOther, wrongType := errors.As(err, &other), errors.Is(err, redlatch.ErrWrongType)
	switch {
	case (isOther || wrongType) && !f.single:
		f.drop(l.Name)
		return nil
	case wrongType:
		return notWatched(inspect.WrongType(ctx, f.srv, l.Name))
	case isOther:
		return err
	case err != nil:
		return f.srv.Problem(err)
	}
	f.listen(ctx, l.Name, s.Queue)
	if events := l.Look(s); len(events) > 0 {
		f.printAll(events)
	}
	switch {
	case !l.Idle():
		l.idle = time.Time{}
	case l.idle.IsZero():
		l.idle = s.Answered
	}
	return nil
}

func notWatched(err error) error {
	if other := (*inspect.NotLock)(nil); errors.As(err, &other) && other.Key == other.Name && other.Type == "string" {
		return fmt.Errorf("%w. For a semaphore or a latch, use `redlatch status %s`", err, inspect.Args(other.Name))
	}
	return err
}

// forget drops locks that have been free for some time. A message or a scan finds them again.
func (f *follower) forget(now time.Time) {
	for name, l := range f.locks {
		if !f.single && !l.idle.IsZero() && now.Sub(l.idle) > forgetAfter {
			f.drop(name)
		}
	}
}

func (f *follower) printAll(events []follow.Event) {
	var owners []string
	for i := range events {
		owners = append(owners, events[i].Owner)
	}
	labels, _ := inspect.Labels(f.side, owners) // nil if they cannot be read
	for i := range events {
		f.print(&events[i], labels[events[i].Owner])
	}
}

func (f *follower) print(e *follow.Event, label string) {
	f.emit(eventJSONOf(e, label), eventLine(e, label, !f.single))
}

type eventJSON struct {
	At time.Time `json:"at"`
	inspect.Named
	Event       string `json:"event"`
	Owner       string `json:"owner,omitempty"`
	OwnerBase64 string `json:"owner_base64,omitempty"`
	*inspect.Client
	Label string        `json:"label,omitempty"`
	From  string        `json:"from,omitempty"`
	Count inspect.Count `json:"count,omitempty"`
	Mode  string        `json:"mode,omitempty"`
	// LeaseMillis is nil without a lease.
	LeaseMillis *int64 `json:"ttl_ms,omitempty"`
	NoTTL       bool   `json:"no_ttl,omitempty"`
	Position    int    `json:"position,omitempty"`
	Queue       int    `json:"queue_length"`
	Messages    int    `json:"messages"`
}

func eventJSONOf(e *follow.Event, label string) *eventJSON {
	t := &eventJSON{
		At: e.At.UTC(), Named: inspect.NameOf(e.Name), Event: e.What, Owner: e.Owner, OwnerBase64: inspect.Base64(e.Owner), Label: label, From: e.From, Count: inspect.Count(e.Count), Mode: e.Mode,
		Position: e.Place, Queue: e.Queue, Messages: e.Messages,
	}
	if e.Owner != "" {
		c := inspect.ClientOf(e.Owner)
		t.Client = &c
	}
	lease := inspect.LeaseOf(e.Count != "", e.Lease)
	t.LeaseMillis, t.NoTTL = lease.TTLMillis, lease.NoTTL
	return t
}

func eventLine(e *follow.Event, label string, named bool) string {
	line := fmt.Sprintf("%s %-8s  %s", e.At.UTC().Format("15:04:05.000Z"), e.What, eventWords(e))
	if named {
		line += "  " + sanitize.Word(e.Name)
	}
	if label != "" {
		line += "  " + sanitize.Line(label)
	}
	return line
}

func eventWords(e *follow.Event) string {
	who := "owner unknown"
	if e.Owner != "" {
		who = inspect.ShortOwner(e.Owner)
	}
	switch e.What {
	case follow.Free:
		if e.Queue == 0 {
			return "the queue is empty"
		}
		return fmt.Sprintf("%d queued, next %s", e.Queue, inspect.ShortOwner(e.Next))
	case follow.Held:
		return fmt.Sprintf("%s, count %s, %s", who, sanitize.Word(e.Count), leaseWords(e))
	case follow.Taken:
		return who + ", " + leaseWords(e)
	case follow.Passed:
		return who + " from " + inspect.OwnerNumber(e.From)
	case follow.Entered, follow.Left:
		if e.Count == "" {
			return who + ", others hold it"
		}
		return who + ", count " + sanitize.Word(e.Count)
	case follow.Queued:
		return fmt.Sprintf("%s, place %d", who, e.Place)
	}
	return who
}

func leaseWords(e *follow.Event) string {
	if e.Lease < 0 {
		return "no lease"
	}
	return "lease " + cli.Lease(e.Lease)
}
