package repair

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
)

// hearing is who will hear that the lock is free.
type hearing struct {
	notified    string
	subscribers *int64 // nil when they cannot be counted
	name, first string // the lock, and the waiter that is notified, of a fair lock
	semaphore   bool
}

// hearing counts, before the lock is taken from some holders, the connections that will get the
// message: a message to a channel without a subscriber notifies no waiter.
func (u *Unlock) hearing(ctx context.Context, now *look, from []string) hearing {
	if u.semaphore {
		return hearing{notified: notifiedAll, subscribers: onChannel(ctx, u.Dial, codec.SemaphoreChannel(u.Name)), semaphore: true}
	}
	in := now.lock
	switch {
	case len(u.owners()) > 0 && now.stays(from):
		return hearing{notified: notifiedNone}
	case now.Mode != "":
		return hearing{notified: notifiedAll, subscribers: onChannel(ctx, u.Dial, codec.ReadWriteChannel(in.Name))}
	case !in.ReadQueue():
		return hearing{notified: notifiedPlain, subscribers: onChannel(ctx, u.Dial, codec.LockChannel(in.Name))}
	case in.Waiting == 0:
		return hearing{notified: notifiedAll, subscribers: onChannel(ctx, u.Dial, codec.LockChannel(in.Name))}
	}
	h := hearing{notified: notifiedFirst, name: in.Name}
	for i := range in.Queue {
		if w := &in.Queue[i]; w.Deadline.IsZero() || w.Deadline.After(time.Now()) {
			h.first = w.Text
			break
		}
	}
	if h.first != "" {
		if counts, err := admin.Listeners(ctx, rfairlock.New(u.Client, in.Name), h.first); err == nil && len(counts) == 1 {
			h.subscribers = &counts[0]
		}
	}
	return h
}

// stays reports whether a lock has holders that block it when some have lost it.
func (f *Forced) stays(from []string) bool {
	return slices.ContainsFunc(f.Holders, func(h inspect.Holder) bool { return !h.IsOver() && !slices.Contains(from, h.Owner) })
}

// onChannel counts the connections of the master that are subscribed to a channel.
func onChannel(ctx context.Context, dial connect.Dialer, channel string) *int64 {
	var n []int64
	err := connect.Use(ctx, dial, func(c redis.Conn) (err error) {
		n, err = connect.Listening(ctx, c, channel)
		return err
	})
	if err != nil || len(n) != 1 {
		return nil
	}
	return &n[0]
}

// text says which waiters the message has reached.
func (h *hearing) text() string {
	switch {
	case h.subscribers == nil || *h.subscribers > 0:
		return notifiedTexts[h.notified]
	case h.notified == notifiedFirst:
		return fmt.Sprintf("no waiter was notified: no connection is subscribed for the first in the queue, %s. "+
			"If it is dead, `redlatch evict %s` takes it out of the queue, and `redlatch evict --all-dead %s` all that are dead",
			sanitize.Word(h.first), inspect.Args(h.name, h.first), inspect.Args(h.name))
	case h.notified == notifiedPlain:
		return "no waiter was notified: no connection of the master is subscribed to the channel of the plain lock. " +
			"Whether the fair lock of this name has a queue is unknown: a waiter in it gets the lock when it next polls"
	}
	of := "lock"
	if h.semaphore {
		of = "semaphore"
	}
	return "no waiter was notified: no connection of the master is subscribed to the " + of + "'s channel"
}
