package inspect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// KindFair is the kind of lock that an inspection which has read the queue is of.
const KindFair = "fair"

// Lock reads a lock: it asks for a fair lock and the first places of its queue. A plain
// lock is one with an empty queue. When the server refuses to read the queue, it returns the lock
// alone.
func Lock(ctx context.Context, client *redlatch.Client, name string, places int) (*admin.Inspection, error) {
	in, _, err := lock(ctx, client, name, places)
	return in, err
}

// lock is Lock that also returns why the queue was not read.
func lock(ctx context.Context, client *redlatch.Client, name string, places int) (in *admin.Inspection, unread, err error) {
	in, err = admin.InspectPart(ctx, rfairlock.New(client, name), 1, places)
	var refusal *transport.ServerError
	switch {
	case !errors.As(err, &refusal), errors.Is(err, redlatch.ErrWrongType):
		return in, nil, err
	case engine.Passing(err) && !refusal.HasCode("TRYAGAIN"): // the server refuses to read any key
		return in, nil, err
	}
	unread = err
	in, err = admin.Inspect(ctx, rlock.New(client, name))
	return in, unread, err
}

// QueueUnread says why the queue was not read, "" when it was.
func (s *Snapshot) QueueUnread() string {
	switch {
	case s.ReadQueue():
		return ""
	case s.unread == nil || connect.Denied(s.unread):
		return "this user may not read it"
	}
	return strings.TrimSuffix(connect.Reason(s.unread)+". "+connect.Remedy(s.unread), ". ")
}

// Pause waits for d, or until ctx ends, and returns the error of that.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NotCounted returns why listeners cannot be counted, in few words.
func NotCounted(err error) string {
	var at *redlatch.LockError
	if errors.As(err, &at) {
		err = at.Err
	}
	why := strings.TrimPrefix(err.Error(), admin.ErrNotCounted.Error()+": ")
	return strings.ReplaceAll(sanitize.WithoutPrefix(why), "\n", "; ")
}
