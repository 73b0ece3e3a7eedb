package fairqueue

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testCommand = 3 * time.Second
	testLease   = 30 * time.Second
	testPollCap = 10 * time.Second

	// The engine's pauses after failures.
	askSoon  = 250 * time.Millisecond
	askLater = time.Second
)

var (
	errBroken  = fmt.Errorf("%w: connection reset", transport.ErrUncertain)
	errNotSent = fmt.Errorf("%w: connection refused", transport.ErrNotSent)
	errRefused = &transport.ServerError{Text: "NOPERM this user has no permissions"}
	errLoading = &transport.ServerError{Text: "LOADING Redis is loading the dataset in memory"}
)

var theLock = lockID{"fair", "lock"}

// queuesOver returns the Queues of a client, which is closed when the test ends, and the client's
// log.
func queuesOver(t *testing.T, tr transport.Transport) (*Queues, *faketransport.Log) {
	t.Helper()
	log := &faketransport.Log{}
	e := engine.New(engine.Config{
		Transport: tr,
		ClientID:  uuid.New(),
		Lease:     testLease,
		Command:   testCommand,
		PollCap:   testPollCap,
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return Of(e), log
}

func newQueues(t *testing.T) *Queues {
	t.Helper()
	qs, _ := queuesOver(t, &faketransport.Fake{})
	return qs
}

// requireNothingOpen requires that the client can be closed without waiting. It must be called in a
// synctest bubble.
func requireNothingOpen(t *testing.T, qs *Queues) {
	t.Helper()
	began := time.Now()
	require.NoError(t, qs.engine.Close())
	require.Zero(t, time.Since(began), "Close waits for something")
}

type answer = func(*faketransport.SentCall) (any, error, bool)

func answering(reply any, err error) answer {
	return func(*faketransport.SentCall) (any, error, bool) { return reply, err, true }
}

func names(f *faketransport.Fake) []string {
	var all []string
	for _, c := range f.Sent() {
		all = append(all, c.Name)
	}
	return all
}

func count(f *faketransport.Fake, name string) int {
	n := 0
	for _, c := range names(f) {
		if c == name {
			n++
		}
	}
	return n
}

// fakeKind is a kind of lock with a queue on the server. Its calls are commands with made-up names.
type fakeKind struct {
	Kind
	name, key string
	kept      []time.Duration // by each heartbeat and eviction
}

func kindOf(id lockID) *fakeKind { return &fakeKind{name: id.kind, key: id.key} }

func (k *fakeKind) Name() string { return k.name }
func (k *fakeKind) Key() string  { return k.key }

func (k *fakeKind) Channel(owner any) string { return fmt.Sprint(owner) }

func (k *fakeKind) GiveUp(c *transport.Call, r *acquire.Request) {
	c.Command = "GIVEUP"
	c.Args = append(c.Args, r.Owner)
}

func (k *fakeKind) Heartbeat(c *transport.Call, keep time.Duration, window int, waiters []Waiter, others []reply.Other) {
	k.kept = append(k.kept, keep)
	c.Command = "HEARTBEAT"
	c.Args = append(c.Args, window)
	for _, w := range waiters {
		c.Args = append(c.Args, w.Owner)
	}
	for _, o := range others {
		if o.Living {
			c.Args = append(c.Args, o.Owner+" lives")
		}
	}
}

func (k *fakeKind) Evict(c *transport.Call, keep time.Duration, dead []reply.Place) {
	k.kept = append(k.kept, keep)
	c.Command = "EVICT"
	for _, p := range dead {
		c.Args = append(c.Args, p.Owner)
	}
}

func (k *fakeKind) Nudge(c *transport.Call, owner string) {
	c.Command = "NUDGE"
	c.Args = append(c.Args, owner)
}

func join(qs *Queues, id lockID, owner string) *caller {
	c := &caller{strategy: &strategy{queues: qs, kind: kindOf(id)}}
	c.join(id.key, Waiter{Owner: owner, Wait: int64(300_000)})
	return c
}

func joinAll(qs *Queues, owners ...string) []*caller {
	var all []*caller
	for _, owner := range owners {
		all = append(all, join(qs, theLock, owner))
	}
	return all
}
