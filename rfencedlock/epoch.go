package rfencedlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

var (
	// ErrCounter says that the counter of a fenced lock holds no number, or stands at 2^63-1
	// and cannot be raised. Nothing is held, and the counter is as it was. A number below 0
	// is transport.ErrBadReply: each attempt raises it by one, and gives the lock back.
	ErrCounter = errors.New("redlatch: the lock's token counter cannot be raised")

	// ErrEpoch says that the counter of a fenced lock has not reached the epoch that the lock
	// was made with: the epoch has not begun, or the counter was lost and began again.
	// Nothing is held.
	ErrEpoch = errors.New("redlatch: the lock's token counter has not reached its epoch")
)

// MaxEpoch is the last epoch that there can be. All its tokens are below 2^53, so that programs
// whose numbers are floating-point have them exactly.
const MaxEpoch = 1<<13 - 1

// epochBits is how many binary digits of a token count within an epoch.
const epochBits = 40

// Option sets something about a fenced lock.
type Option func(*settings)

type settings struct {
	least int64
	err   error
}

// WithEpoch makes the lock refuse, with ErrEpoch, to give tokens below those of the epoch n,
// from 1 to [MaxEpoch]. The tokens of epoch n are those from n × 2^40 on, so a counter that was
// lost and begins again at 1 gives none, and a human decides. [Lock.BeginEpoch] begins an
// epoch. All programs that share the lock should have the same epoch; Redisson's have none,
// and take the lock with the tokens that there are, which guards refuse. Default: no epoch.
func WithEpoch(n int) Option {
	return func(s *settings) {
		if n < 1 || n > MaxEpoch {
			s.err = fmt.Errorf("%w: the epoch %d is not from 1 to %d", redlatch.ErrInvalid, n, MaxEpoch)
			return
		}
		s.least = int64(n) << epochBits
	}
}

// BeginEpoch raises the counter to the first token of the epoch that the lock was made with,
// and reports whether it was below. Call it once, by hand, before the first use of an epoch;
// never for one that has had tokens already, since those would be given again. It does not
// matter whether the lock is held. It returns redlatch.ErrInvalid for a lock without an epoch, and
// ErrCounter when the counter holds no number. It sends one EVALSHA.
func (l *Lock) BeginEpoch(ctx context.Context) (bool, error) {
	failed := func(err error) error {
		return l.explain(&redlatch.LockError{Op: "begin-epoch", Name: l.Name(), Err: err})
	}
	if l.least == 0 && l.Internal().Err == nil {
		return false, failed(fmt.Errorf("%w: the lock was made without WithEpoch", redlatch.ErrInvalid))
	}
	answer, err := l.Internal().Ask(ctx, func(c *transport.Call) { luasrc.FillRaise(c, l.counter(), l.least) })
	if err != nil {
		return false, failed(err)
	}
	raised, err := reply.Exists(answer)
	if err != nil {
		return false, failed(err)
	}
	return raised, nil
}

// explain gives the errors of the counter names of their own.
func (l *Lock) explain(err error) error {
	var failed *redlatch.LockError
	var answer *transport.ServerError
	if !errors.As(err, &failed) || !errors.As(err, &answer) {
		return err
	}
	key := l.counter()
	switch text := answer.Text; {
	case strings.Contains(text, luasrc.ErrBehind):
		failed.Err = fmt.Errorf("%w (key %q): begin an epoch that was never used, see WithEpoch", ErrEpoch, key)
	case strings.Contains(text, "not an integer"), strings.Contains(text, "overflow"):
		failed.Err = fmt.Errorf("%w (key %q): %w", ErrCounter, key, failed.Err)
	case errors.Is(failed.Err, redlatch.ErrWrongType):
		failed.Err = fmt.Errorf("%w: the lock must be a hash, and its token counter, %q, a number", failed.Err, key)
	}
	return err
}
