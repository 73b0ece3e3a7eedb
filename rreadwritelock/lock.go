package rreadwritelock

import (
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

// ErrUpgrade says that a reader has asked to write with the context of its hold. It would wait
// for itself: unlock the read hold first, or take the lock to write from the beginning. It
// wraps redlatch.ErrInvalid. Nothing was sent.
var ErrUpgrade = fmt.Errorf("%w: a reader cannot become the writer, since it would wait for itself: unlock the read hold first",
	redlatch.ErrInvalid)

// Lock is a read/write lock by name. It holds no owner and no state of its own: any number of
// goroutines may use one Lock, and any number of Locks may be made for one name.
type Lock struct{ read, write *rlock.Lock }

// Option sets something about a read/write lock.
type Option func(*settings)

type settings struct{ passing bool }

// WithoutWriterPreference lets the readers of this Lock in also while a writer of the same
// client waits. Then readers that take turns without a pause can keep a writer out for ever, as
// in Redisson. Default: a writer that waits lets in 32 readers more, or those of 20 ms; others
// wait until the writer had the lock or has left, at least until those that are in have left
// and one second more. So two readers of one client must not wait for each other, as with
// sync.RWMutex; a reader's context may read again at any time.
func WithoutWriterPreference() Option { return func(s *settings) { s.passing = true } }

// New returns the read/write lock called name: Redisson's getReadWriteLock. It sends nothing. A
// name that no lock can have shows as redlatch.ErrInvalid in every call of both roles.
func New(client *redlatch.Client, name string, opts ...Option) *Lock {
	var set settings
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	l := &Lock{&rlock.Lock{}, &rlock.Lock{}}
	e := engine.EngineOf(client)
	*l.read.Internal() = hold.NewLock(e, name, makeReader(!set.passing))
	*l.write.Internal() = hold.NewLock(e, name, makeWriter)
	return l
}

// Name returns the name that the lock was made with. It sends nothing.
func (l *Lock) Name() string { return l.read.Name() }

// Read returns the lock as its readers have it: any number of owners hold it at a time, and no
// writer does. It has the methods, options and errors of a plain lock; the package
// documentation says where they mean something of their own. It sends nothing, and returns the
// same lock each time.
func (l *Lock) Read() *rlock.Lock { return l.read }

// Write returns the lock as its writer has it: one owner holds it at a time, and no other reads.
// Otherwise as [Lock.Read].
func (l *Lock) Write() *rlock.Lock { return l.write }
