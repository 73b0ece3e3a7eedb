package holding

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// permits is the value of --permits: a semaphore, and how many permits it has.
type permits struct {
	name string
	n    int
}

// maxPermits is how many permits a semaphore can have, as in Java.
const maxPermits = 1<<31 - 1

// parsePermits reads NAME:N. The name may have colons.
func parsePermits(text string) (permits, error) {
	i := strings.LastIndexByte(text, ':')
	n, err := strconv.Atoi(text[i+1:])
	if i < 1 || err != nil || n < 1 || n > maxPermits {
		return permits{}, cli.Errorf(CodeFailed, "--permits must be NAME:N, such as crawl:5, with N from 1 to %d, not %q", maxPermits, text)
	}
	return permits{text[:i], n}, nil
}

// checkPermits refuses flags that make no sense with --permits.
func (o *Options) checkPermits(changed func(string) bool) error {
	switch {
	case o.Fair, o.Fenced, o.Read, o.Write:
		return cli.Errorf(CodeFailed, "--permits and --fair, --fenced, --read or --write contradict each other: a name is that of a lock or of a semaphore")
	case changed("at-least"):
		return cli.Errorf(CodeFailed, "--permits and --at-least contradict each other: a permit comes back as soon as it is not used")
	}
	var err error
	o.of, err = parsePermits(o.Permits)
	return err
}

// setPermits makes the semaphore, or sets how many permits it has. A number of which no permit
// is taken, and that is another one, may be something else, such as a counter or a latch: it is
// left alone.
func (o *Options) setPermits(ctx context.Context, sem *rsemaphore.Expirable) error {
	made, err := sem.TrySetPermits(ctx, o.of.n)
	if made || err != nil {
		return err
	}
	in, err := sem.Inspect(ctx)
	switch {
	case err != nil:
		return err
	case in.Available+in.Taken == o.of.n:
		return nil
	case in.Taken == 0 && in.Exists:
		return cli.Errorf(CodeFailed, "semaphore %q: the key holds the number %d, and no permit is taken: it may be that of "+
			"something else. If it is this semaphore with another number of permits, delete the key", o.of.name, in.Available)
	}
	return sem.SetPermits(ctx, o.of.n)
}

// takePermit sets how many permits there are, and takes one.
func (o *Options) takePermit(ctx context.Context, client *redlatch.Client) (Locker, *rlock.Hold, error) {
	sem := rsemaphore.NewExpirable(client, o.of.name)
	setting, set := o.connecting(ctx)
	err := o.setPermits(setting, sem)
	set()
	if err != nil {
		return nil, nil, err
	}
	lock := &rlock.Lock{}
	*lock.Internal() = *sem.Internal()
	hold, err := o.take(ctx, lock)
	return lock, hold, err
}

// noPermit makes the exit code and the line of a permit that was not taken, nil when the error
// says nothing of permits.
func (o *Options) noPermit(err error) error {
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired):
		if o.of.n == 1 {
			return cli.Errorf(o.Conflict, "semaphore %q: its one permit is taken", o.of.name)
		}
		return cli.Errorf(o.Conflict, "semaphore %q: all %d permits are taken", o.of.name, o.of.n)
	case errors.Is(err, redlatch.ErrWrongType):
		return cli.Errorf(CodeFailed, "semaphore %q: the key holds something that is no semaphore, such as a lock of this name", o.of.name)
	}
	return nil
}
