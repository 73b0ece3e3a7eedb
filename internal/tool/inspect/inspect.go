package inspect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// KindFair is the kind of lock that an inspection which has read the queue is of.
const KindFair = "fair"

// Lock reads a lock: it asks for a fair lock and the first places of its queue. A plain
// lock is one with an empty queue. For a user that may not read queues it returns the lock
// alone.
func Lock(ctx context.Context, client *redlatch.Client, name string, places int) (*admin.Inspection, error) {
	in, err := admin.InspectPart(ctx, rfairlock.New(client, name), 1, places)
	var refusal *transport.ServerError
	if errors.As(err, &refusal) && !errors.Is(err, redlatch.ErrWrongType) {
		return admin.Inspect(ctx, rlock.New(client, name))
	}
	return in, err
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
