package luasrc

import (
	"strings"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

func holdOf(l, owner string, k, pttl int64) map[string]any {
	return map[string]any{protocol.HoldKey(l, owner, k): held{map[string]string{"": "1"}, pttl}}
}

func without(state map[string]any, keys ...string) map[string]any {
	state = also(state)
	for _, key := range keys {
		delete(state, key)
	}
	return state
}

// The calls about a read/write lock, in the role of the owner.

func rwCall(l, owner string, fill func(rw *ReadWrite, c *transport.Call)) vector {
	rw := ReadWrite{Role: &Reader, Key: l, Channel: protocol.ReadWriteChannel(l), Publish: "PUBLISH"}
	if _, isWriter := protocol.WriterOf(owner); isWriter {
		rw.Role = &Writer
	}
	return filled(func(c *transport.Call) { fill(&rw, c) })
}

func enter(l, owner string, lease int64) vector {
	return rwCall(l, owner, func(rw *ReadWrite, c *transport.Call) { rw.Acquire(c, owner, lease) })
}

func enterAgain(l, owner string, lease, target int64) vector {
	return rwCall(l, owner, func(rw *ReadWrite, c *transport.Call) { rw.Reenter(c, owner, lease, target) })
}

func leave(l, owner string, target, lease int64) vector {
	return rwCall(l, owner, func(rw *ReadWrite, c *transport.Call) { rw.Release(c, owner, lease, target) })
}

func leaveShared(l, owner string, lease int64) vector {
	return rwCall(l, owner, func(rw *ReadWrite, c *transport.Call) {
		rw.ReleaseShared(c, protocol.LatchKey(l, requestID), owner, lease)
	})
}

func forceRead(l string) vector  { return rwCall(l, ownerA, (*ReadWrite).ForceRelease) }
func forceWrite(l string) vector { return rwCall(l, writerA, (*ReadWrite).ForceRelease) }

func reads(leases ...lease) vector {
	return filled(func(c *transport.Call) {
		FillReadRenew(c, len(leases), func(i int) (key, owner, ttl any) { return leases[i].lock, leases[i].owner, leases[i].millis })
	})
}

func take(l string, n int64) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Counter.Acquire(c, n) })
}

func more(l string, n int64) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Add(c, n) })
}

func moreIfThere(l string, n int64) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.ReleaseExisting(c, n) })
}

func drain(l string) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Drain(c) })
}

func trySet(l string, n, ttl int64) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.TrySet(c, n, ttl) })
}

func permit(l string, at int64, lease int64, ids ...string) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) {
		s.Acquire(c, at, strings.Join(ids, ""), lease)
	})
}

func unpermit(l string, at int64, ids ...string) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Release(c, at, strings.Join(ids, ""), IDSize) })
}

func setPermits(l string, n int64) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Set(c, n) })
}

func countPermits(l string, at int64) vector {
	return onSemaphore(l, func(s *Permits, c *transport.Call) { s.Count(c, at) })
}
