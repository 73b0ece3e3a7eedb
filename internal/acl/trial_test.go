package acl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	// soon bounds waits for events that should be immediate.
	soon = 10 * time.Second
	// lease is longer than any wait of the tests.
	lease = time.Minute
	// foreign is the owner of locks that tests hold by hand.
	foreign = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:7"
)

// refusals contains parts of the errors with which servers reject a command, directly or in a
// script.
var refusals = []string{"NOPERM", "can't run this", "can't access at least", "can't publish", "ACL failure in script"}

// trial is a test with a client that logs in as a user.
type trial struct {
	*testing.T
	server *redistest.Server
	url    string
	client *redlatch.Client
	log    *redistest.Journal
}

// eachServer runs body on Redis and, in make test-all, also on Valkey.
func eachServer(t *testing.T, body func(t *testing.T, s *redistest.Server)) {
	t.Helper()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		body(t, redistest.Start(t))
	})
	t.Run("valkey", func(t *testing.T) {
		testlevel.All(t, "the same on Valkey")
		t.Parallel()
		body(t, redistest.StartValkey(t))
	})
}

// try creates a user with the given rights (arguments of ACL SETUSER), runs use, and returns its error, or the error of
// a call that was rejected in the background.
func try(t *testing.T, s *redistest.Server, rights []any, use func(x *trial) error, opts ...redlatch.Option) (wrong error) {
	t.Helper()
	s.Do(t, "FLUSHALL")
	s.Do(t, "SCRIPT", "FLUSH", "SYNC")
	s.Do(t, "CONFIG", "RESETSTAT")
	s.Do(t, "ACL", rights...)
	user, _ := rights[1].(string)
	log, logger := redistest.NewJournal()
	x := &trial{T: t, server: s, url: s.UserURL(user), log: log}
	opts = append(opts, redlatch.WithLogger(logger), redlatch.WithCommandTimeout(soon))
	client, err := redlatch.Open(t.Context(), x.url, opts...)
	if err != nil {
		return err
	}
	x.client = client
	defer func() {
		// Close then has no unresolved calls.
		s.Do(t, "ACL", "SETUSER", user, "on", "allkeys", "allchannels", "allcommands")
		require.NoError(t, client.Close())
	}()
	if err := use(x); err != nil {
		return err
	}
	return x.refused()
}

// refused returns the rejections logged so far.
func (x *trial) refused() error {
	if lines := x.log.Lines(refusals...); len(lines) > 0 {
		return errors.New(lines[0])
	}
	return nil
}

// until waits for cond. It fails as soon as a call is refused.
func (x *trial) until(what string, cond func() bool) error {
	var refused error
	err := x.patiently(what, func() bool {
		refused = x.refused()
		return refused != nil || cond()
	})
	return errors.Join(refused, err)
}

// patiently waits for cond.
func (x *trial) patiently(what string, cond func() bool) error {
	for limit := time.Now().Add(soon); !cond(); <-time.After(time.Millisecond) {
		if time.Now().After(limit) {
			return fmt.Errorf("%s: not within %v", what, soon)
		}
	}
	return nil
}

// names returns names that the manual's users may use.
func (x *trial) names() []string {
	key := redistest.Key(x)
	return []string{"app:" + key, "{app:" + key + "}:in-braces"}
}

// each calls each use with each name until a call fails.
func (x *trial) each(uses ...func(name string) error) error {
	for _, name := range x.names() {
		for _, use := range uses {
			if err := use(name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// unbraced calls use with a name without braces, because for some locks the manual adds only the pattern for such
// names.
func (x *trial) unbraced(use func(name string) error) error { return use(x.names()[0]) }

// heldByHand makes another owner hold a lock.
func (x *trial) heldByHand(name string) {
	x.server.Do(x, "HSET", name, foreign, 1)
	x.server.Do(x, "PEXPIRE", name, lease.Milliseconds())
}

// readByMany makes other owners read a lock, all with the same lease.
func (x *trial) readByMany(name string) {
	until := time.Now().Add(2 * lease).UnixMilli()
	x.server.Do(x, "HSET", name, protocol.ModeField, protocol.ModeRead)
	for i := range 20 {
		reader := fmt.Sprint(foreign, i)
		x.server.Do(x, "SET", protocol.HoldKey(name, reader, 1), "1", "PXAT", until)
		x.server.Do(x, "HSET", name, reader, 1)
	}
	x.server.Do(x, "PEXPIREAT", name, until)
}

// queuedByHand adds owners to the end of a fair lock's queue. The durations are the times until their deadlines.
func (x *trial) queuedByHand(name string, owners map[string]time.Duration, order ...string) {
	for _, owner := range order {
		x.server.Do(x, "RPUSH", codec.QueueKey(name), owner)
		x.server.Do(x, "ZADD", codec.TimeoutKey(name), time.Now().Add(owners[owner]).UnixMilli(), owner)
	}
}

// queue returns the owners that are queued for a fair lock.
func (x *trial) queue(name string) []string {
	queue, err := redis.Strings(x.server.Do(x, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(x, err)
	return queue
}

// listening returns how many channels that start with channel have listeners.
func (x *trial) listening(channel string) int {
	n := 0
	for _, c := range x.server.Channels(x) {
		if strings.HasPrefix(c, channel) {
			n++
		}
	}
	return n
}

// waiting is a call on a separate goroutine.
type waiting struct {
	done   chan struct{}
	cancel context.CancelFunc
	undo   func() error // to be read after done, like err
	err    error
}

func (x *trial) await(l *rlock.Lock) *waiting { return x.awaitFor(soon, locks(l)) }

// locks returns a call that acquires l. It returns the hold's Unlock.
func locks(l *rlock.Lock) func(ctx context.Context) (unlock func() error, err error) {
	return func(ctx context.Context) (func() error, error) {
		hold, err := l.Lock(ctx, rlock.WithLease(lease))
		if err != nil {
			return nil, err
		}
		return hold.Unlock, nil
	}
}

// listens starts a call that has to wait, and returns when it listens to channel.
func (x *trial) listens(channel string, call func(ctx context.Context) (undo func() error, err error)) (*waiting, error) {
	w := x.awaitFor(soon, call)
	err := x.until("it listens", func() bool { return w.over() || x.listening(channel) > 0 })
	if err == nil && w.over() {
		err = fmt.Errorf("it has not waited: %w", w.err)
	}
	return w, err
}

func (x *trial) awaitFor(bound time.Duration, call func(ctx context.Context) (undo func() error, err error)) *waiting {
	ctx, cancel := context.WithTimeout(x.Context(), bound)
	w := &waiting{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.done)
		w.undo, w.err = call(ctx)
	}()
	x.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

// over reports whether the call has returned.
func (w *waiting) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// unlock waits for the call and undoes it.
func (w *waiting) unlock() error {
	<-w.done
	if w.err != nil {
		return w.err
	}
	return w.undo()
}
