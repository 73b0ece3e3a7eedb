package compat

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

const twoLeases = 2*watchdogMS*time.Millisecond + time.Second

var watchdog = redlatch.WithWatchdogTimeout(watchdogMS * time.Millisecond)

type pair struct {
	*compat
	server *redistest.Server
	java   *java
	client *redlatch.Client
	name   string
	kind   lockKind
	lock   *rlock.Lock
}

func (c *compat) pair(t *testing.T) *pair {
	t.Helper()
	return c.pairOf(t, lockKinds[0])
}

func (c *compat) pairOf(t *testing.T, kind lockKind) *pair {
	t.Helper()
	return c.pairWith(t, c.peer, redistest.Shared(t), kind, watchdog)
}

func (c *compat) pairWith(
	t *testing.T, p *peer.Peer, s *redistest.Server, kind lockKind, opts ...redlatch.Option,
) *pair {
	t.Helper()
	client, name := open(t, s, opts...), redistest.Key(t)
	return &pair{c, s, connect(t, p, s, peer.Command{"watchdog": watchdogMS}), client, name, kind, kind.ours(client, name)}
}

// rival returns the kind of lock that the pair's kind excludes. For a read/write lock, this is the other role, because
// readers do not exclude each other.
func (p *pair) rival() lockKind {
	switch p.kind.java {
	case "read":
		return lockKinds[3]
	case "write":
		return lockKinds[2]
	}
	return p.kind
}

func (p *pair) rivals(fields peer.Command) (*rlock.Lock, peer.Command) {
	kind := p.rival()
	return kind.ours(p.client, p.name), peer.Command{"kind": kind.java}.With(fields)
}

func (p *pair) of(op string, fields peer.Command) peer.Command {
	return peer.Command{"op": op, "name": p.name, "kind": p.kind.java}.With(fields)
}

func (p *pair) does(t *testing.T, op string, fields peer.Command) peer.Reply {
	t.Helper()
	return p.java.do(t, p.of(op, fields))
}

func (p *pair) truth(t *testing.T, op string, fields peer.Command) bool {
	t.Helper()
	return p.java.boolean(t, p.of(op, fields))
}

func (p *pair) begin(op string, fields peer.Command) *peer.Call {
	return p.java.begin(p.of(op, fields))
}

func refused(t *testing.T, lock *rlock.Lock) {
	t.Helper()
	_, err := lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
}

func (p *pair) await(t *testing.T, n int) {
	t.Helper()
	switch {
	case p.kind.java == "fair" && n == 0:
		requireNoQueue(t, p.server, p.name)
	case p.kind.java == "fair":
		awaitQueued(t, p.server, p.name, n)
	case p.kind.enter == oracle.ReadAcquire || p.kind.enter == oracle.WriteAcquire:
		awaitListenersOn(t, p.server, protocol.ReadWriteChannel(p.name), n)
		time.Sleep(time.Duration(min(n, 1)) * 4 * rwParks)
	default:
		awaitListeners(t, p.server, p.name, n)
	}
}

func (p *pair) requireCount(t *testing.T, want int64, owner codec.Owner) {
	t.Helper()
	count := must(p.lock.HoldCount(t.Context(), owner))(t)
	require.Equal(t, want, count)
}

func (p *pair) requireFree(t *testing.T) {
	t.Helper()
	require.False(t, p.truth(t, "isLocked", nil))
	require.NoError(t, must(p.lock.TryLock(t.Context()))(t).Unlock())
	require.True(t, p.truth(t, "tryLock", nil))
	p.does(t, "unlock", nil)
	p.await(t, 0)
}

// jobThread identifies a job. It is not the ID of a Java thread.
const jobThread = 4_000_000_057

func (p *pair) job(t *testing.T) (codec.Owner, peer.Command) {
	t.Helper()
	id := must(uuid.Parse(p.java.id))(t)
	return codec.NewOwner(id, jobThread), peer.Command{"threadId": jobThread}
}
