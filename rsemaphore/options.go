// Package rsemaphore is Redisson's semaphores: so many callers at a time as there are permits, in
// all processes together. [NewExpirable] makes one whose permits come back when their holder
// dies: RPermitExpirableSemaphore in Java. [New] makes one that only counts, RSemaphore, whose
// permits are lost when their holder dies: take it only where Java programs have it already.
//
// # Permits with ids
//
//	            Acquire                     granted
//	caller ───────────────▶ asks, or waits ─────────▶ live ──Release──▶ given back
//	                             │ gave up             │ ──LetExpire──▶ left to its lease
//	                             ▼                     │ ──a permit lost, or not renewed──▶ lost
//	                         no permits                └ ──maximum──▶ left to its lease, or Release
//
// One call takes n permits, all of them or none, and its [Hold] has an id for each. The watchdog
// renews their leases together until Release. A process that dies leaves them for one lease;
// the next attempt of any client gives them back. Redisson does not renew permits: one without
// a lease stays away for ever when its holder dies, and one with a lease is lost when that is
// over, however alive the holder. To Redisson's programs a renewed permit is one with a lease.
//
// When one permit of a hold is lost, since a client has released its id or its key was deleted,
// the whole hold is, and the others are given back. There is no re-entry: a context of a hold
// ends with it and proves nothing. A goroutine that has the only permit and asks for another
// waits for itself.
//
// # How many there are
//
// [Expirable.TrySetPermits] makes the semaphore, [Expirable.SetPermits] changes the number while
// permits are out. A semaphore that was never set has none, and is waited for. More permits
// than there are is [ErrTooMany], at once. The permits that are out and those available are
// together never more than was set, with these exceptions, which are Redisson's: AddPermits
// adds; and the key of the number may be deleted, or evicted, and set anew, while permits are
// out.
//
// # Who goes first
//
// The callers of one client are served in the order of their calls. One that waits for many
// permits does not keep those behind it from permits that are too few for it: see
// [WithStrictOrder]. Between processes there is no order. A release wakes one waiter for each
// permit, also among Redisson's asynchronous ones, of which its own wakes one in all. Redisson's
// threads that wait for several permits can take the wake-up of those that wait for one, by
// whichever client the permit is released; Redlatch's do not.
//
// # Clocks
//
// The end of a lease stands on the server in milliseconds since 1970, by the clock of the client
// that set it, and each client compares it with its own. A client whose clock is ahead by more
// than what a permit has left gives it to another while it is held; of a renewed permit two
// thirds of the lease are left at all times. Keep clocks in step, or use
// redlatch.WithServerTime, where no Redisson takes part. A clock that is off by more than a
// second is logged.
//
// # The counter
//
// The number is all that there is: it tells neither the holders of permits nor how many are out. A process that
// dies keeps its permits; [Semaphore.Add] mends that, by hand. A reply that is lost is
// redlatch.ErrUncertain, for an acquire and for a release: the counter cannot tell what has
// happened. No call is sent twice. redlatch.WithReplicaSync does nothing for it.
package rsemaphore

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Option sets something about a semaphore.
type Option func(*shape)

type shape struct{ strict bool }

// WithStrictOrder serves the callers of this client in the order of their calls, whatever they
// ask for: while one waits for many permits, those behind it wait that ask for few, also where
// these are available. Default: they may go first, so that no permit is left unused; then a
// caller that asks for many can wait for as long as others take them one by one. Between
// processes there is no order, since Redisson's keys have no queue.
func WithStrictOrder() Option { return func(s *shape) { s.strict = true } }

func shapeOf(opts []Option) (s shape) {
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	return s
}

// AcquireOption sets something about one acquisition.
type AcquireOption func(*terms)

type terms struct {
	lock    []rlock.Option
	wait    time.Duration
	bounded bool // WithWait was given
	leased  bool // an option about leases was given
}

// WithWait bounds how long Acquire waits, besides its context, as rlock.WithWait does for a
// lock: at least 1 ms, or 0 for one attempt. When the time runs out Acquire returns
// ErrNotAcquired. Default: no bound.
func WithWait(d time.Duration) AcquireOption {
	return func(t *terms) {
		t.wait, t.bounded = d, true
		t.lock = append(t.lock, rlock.WithWait(d))
	}
}

// WithLease takes permits for d and does not renew them: the hold is lost when d, less the loss
// margin, is over. It is the lease time of Redisson's acquire(leaseTime, unit). At least 1 ms.
// Default: a lease of the client's watchdog timeout that is renewed, which Redisson does not
// have.
func WithLease(d time.Duration) AcquireOption { return leased(rlock.WithLease(d)) }

// WithWatchdog takes permits with a lease of d that is renewed every third of it, in place of the
// client's watchdog timeout: so long do the permits of a crashed holder stay away. At least
// 1 s.
func WithWatchdog(d time.Duration) AcquireOption { return leased(rlock.WithWatchdog(d)) }

// WithMaxHold ends the hold d after it was acquired, however well it is renewed: its contexts end
// with ErrMaxHold, and the permits come back when the lease that is left then is over, or when
// it is released. At least 1 ms. Default: no maximum.
func WithMaxHold(d time.Duration) AcquireOption { return leased(rlock.WithMaxHold(d)) }

func leased(o rlock.Option) AcquireOption {
	return func(t *terms) {
		t.leased = true
		t.lock = append(t.lock, o)
	}
}

func termsOf(opts []AcquireOption) (t terms) {
	for _, o := range opts {
		if o != nil {
			o(&t)
		}
	}
	return t
}

// check returns why a counter cannot be acquired with the terms.
func (t *terms) check(try bool) error {
	switch {
	case t.leased:
		return fmt.Errorf("%w: permits of a counter have no leases: use NewExpirable", redlatch.ErrInvalid)
	case t.bounded && try:
		return fmt.Errorf("%w: TryAcquire does not wait, use Acquire with WithWait", redlatch.ErrInvalid)
	case t.wait < time.Millisecond && t.wait != 0:
		return fmt.Errorf("%w: WithWait(%v) is neither 0 nor at least 1 ms: write a unit, as in 10*time.Second", redlatch.ErrInvalid, t.wait)
	}
	return nil
}

// MaxPermits is how many permits with ids one call can be about.
const MaxPermits = 1000

// maxCount is how many permits a semaphore can have: what Java's int can.
const maxCount = math.MaxInt32

// ErrTooMany says that more permits were asked for than the semaphore has, with those that are
// taken: the caller would wait for ever. Nothing is taken. It wraps redlatch.ErrInvalid. A
// semaphore that has none, or was never set, is waited for.
var ErrTooMany = fmt.Errorf("%w: more permits than the semaphore has", redlatch.ErrInvalid)

// checkCount checks a number of permits.
func checkCount(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%w: %d permits, not %d to %d", redlatch.ErrInvalid, n, least, most)
	}
	return nil
}

// What a caller learns that waits for a semaphore without a key.
var (
	errPermitsNotSet = errors.New("the semaphore was never set or was deleted: call TrySetPermits")
	errCounterNotSet = errors.New("the semaphore was never set or was deleted: call TrySet")
)

// named makes an error of a lock one of a semaphore, whose operations have other names. Nil
// stays nil.
func named(op string, err error) error {
	var failed *redlatch.LockError
	if !errors.As(err, &failed) {
		return err
	}
	renamed := *failed
	renamed.Op = op
	renamed.TTL = max(renamed.TTL, 0) // a semaphore that is empty, or was never set, has no lease that never ends
	var answer *transport.ServerError
	if errors.As(err, &answer) && (strings.Contains(answer.Text, "not an integer") || strings.Contains(answer.Text, "overflow")) {
		renamed.Err = fmt.Errorf("%w: the key must be a number of permits, and stay one: %w", redlatch.ErrWrongType, renamed.Err)
	} else if errors.Is(err, redlatch.ErrWrongType) {
		renamed.Err = fmt.Errorf("%w: a semaphore's key is a number, and that of its permits a sorted set", renamed.Err)
	}
	return &renamed
}

// failed is named for an error that has no name yet.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return named(op, &redlatch.LockError{Op: op, Name: name, Err: err})
}
