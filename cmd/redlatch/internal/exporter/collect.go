package exporter

import (
	"cmp"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// Collector looks at the locks on a server. It is for one goroutine.
type Collector struct {
	// Server is where the locks are.
	Server *connect.Server
	// Groups are the groups of locks, Pattern what names must match, "" for all.
	Groups  Groups
	Pattern string

	seen   *seen
	absent absentees // at the last look
	began  []int64   // by group, of all looks
}

// look is one look under way.
type look struct {
	*Collector
	figures Figures
	now     time.Time
	queues  queues
	began   []int64
}

// Look goes through all keys once, as listing.RunOnMasters does, and finds out which waiters have
// no subscriber. Its errors are those of connect.Server.Problem; after one the figures of earlier
// looks still count. notCounted is why it is not known which waiters are dead; nil when it is.
func (c *Collector) Look(ctx context.Context) (figures *Figures, notCounted, err error) {
	if c.seen == nil {
		c.seen, c.began = newSeen(), make([]int64, len(c.Groups.Names()))
	}
	began := time.Now()
	l := &look{Collector: c, now: began, began: make([]int64, len(c.began))}
	for _, name := range c.Groups.Names() {
		l.figures.Groups = append(l.figures.Groups, Group{Name: name, Held: map[listing.Kind]int64{}})
	}
	unread, err := listing.RunOnMasters(ctx, c.Server, listing.Request{
		Pattern: c.Pattern, Found: l.add, Places: placesOfQueue, Waiting: true, NoLabels: true,
		Looked: func(keys int) { l.figures.Keys += int64(keys) },
	})
	if err = cmp.Or(err, unread.Away); err == nil { // figures of some masters would look as if locks had gone
		notCounted, err = l.findDead(ctx)
	}
	c.seen.turn(err == nil)
	if err != nil {
		return nil, nil, err
	}
	for i := range c.began {
		c.began[i] += l.began[i]
		l.figures.Groups[i].Began = c.began[i]
	}
	l.figures.Unreadable = int64(unread.Keys)
	l.figures.At = time.Now()
	l.figures.Took = l.figures.At.Sub(began)
	return &l.figures, notCounted, nil
}

// add takes a lock in.
func (l *look) add(lock *listing.Lock) error {
	at := l.Groups.of(lock.Name)
	g := &l.figures.Groups[at]
	g.add(lock)
	for _, h := range lock.Holders {
		since, isNew, ok := l.seen.hold(lock, h.Owner, l.now)
		if !ok {
			l.figures.Untracked++
		}
		if isNew {
			l.began[at]++
		}
		g.Oldest = max(g.Oldest, l.now.Sub(since))
	}
	l.figures.Unchecked += l.queues.add(lock, at)
	return nil
}
