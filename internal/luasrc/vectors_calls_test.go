package luasrc

import (
	"strings"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// holdOf is a state of the key of one hold of a reader.
func holdOf(l, owner string, k, pttl int64) map[string]any {
	return map[string]any{codec.HoldKey(l, owner, k): held{map[string]string{"": "1"}, pttl}}
}

// without is a state without some of its keys.
func without(state map[string]any, keys ...string) map[string]any {
	state = also(state)
	for _, key := range keys {
		delete(state, key)
	}
	return state
}

func readCall(does, l string, fill func(r *ReadWrite, c *transport.Call)) vector {
	r := ReadWrite{Role: &Reader, Key: l, Channel: codec.ReadWriteChannel(l), Publish: "PUBLISH"}
	return filled(does, func(c *transport.Call) { fill(&r, c) })
}

func writeCall(does, l string, fill func(w *ReadWrite, c *transport.Call)) vector {
	w := ReadWrite{Role: &Writer, Key: l, Channel: codec.ReadWriteChannel(l), Publish: "PUBLISH"}
	return filled(does, func(c *transport.Call) { fill(&w, c) })
}

func read(l, owner string, lease int64) vector {
	return readCall("read by "+owner, l, func(r *ReadWrite, c *transport.Call) { r.Acquire(c, owner, lease) })
}

func reread(l, owner string, lease, target int64) vector {
	return readCall("read again by "+owner, l, func(r *ReadWrite, c *transport.Call) { r.Reenter(c, owner, lease, target) })
}

func unread(l, owner string, target, lease int64) vector {
	return readCall("release by reader "+owner, l, func(r *ReadWrite, c *transport.Call) { r.Release(c, owner, lease, target) })
}

func unreadShared(l, owner string, lease int64) vector {
	return readCall("shared release by reader "+owner, l, func(r *ReadWrite, c *transport.Call) {
		r.ReleaseShared(c, codec.LatchKey(l, requestID), owner, lease)
	})
}

func forceRead(l string) vector {
	return readCall("force release of readers", l, func(r *ReadWrite, c *transport.Call) { r.ForceRelease(c) })
}

func reads(leases ...lease) vector {
	return filled("renew readers", func(c *transport.Call) {
		FillReadRenew(c, len(leases), func(i int) (key, owner, ttl any) {
			return leases[i].lock, leases[i].owner, leases[i].millis
		})
	})
}

func write(l, writer string, lease int64) vector {
	return writeCall("write by "+writer, l, func(w *ReadWrite, c *transport.Call) { w.Acquire(c, writer, lease) })
}

func rewrite(l, writer string, lease, target int64) vector {
	return writeCall("write again by "+writer, l, func(w *ReadWrite, c *transport.Call) { w.Reenter(c, writer, lease, target) })
}

func unwrite(l, writer string, target, lease int64) vector {
	return writeCall("release by writer "+writer, l, func(w *ReadWrite, c *transport.Call) { w.Release(c, writer, lease, target) })
}

func unwriteShared(l, writer string, lease int64) vector {
	return writeCall("shared release by writer "+writer, l, func(w *ReadWrite, c *transport.Call) {
		w.ReleaseShared(c, codec.LatchKey(l, requestID), writer, lease)
	})
}

func forceWrite(l string) vector {
	return writeCall("force release of the writer", l, func(w *ReadWrite, c *transport.Call) { w.ForceRelease(c) })
}

func take(l string, n int64) vector {
	return onSemaphore("acquire", l, func(s *Permits, c *transport.Call) { s.Counter.Acquire(c, n) })
}

func more(l string, n int64) vector {
	return onSemaphore("add", l, func(s *Permits, c *transport.Call) { s.Add(c, n) })
}

func drain(l string) vector {
	return onSemaphore("drain", l, func(s *Permits, c *transport.Call) { s.Drain(c) })
}

func trySet(l string, n, ttl int64) vector {
	return onSemaphore("try set", l, func(s *Permits, c *transport.Call) { s.TrySet(c, n, ttl) })
}

func permit(l string, at int64, lease int64, ids ...string) vector {
	return onSemaphore("acquire permits", l, func(s *Permits, c *transport.Call) {
		s.Acquire(c, at, strings.Join(ids, ""), lease)
	})
}

func unpermit(l string, at int64, ids ...string) vector {
	return onSemaphore("release permits", l, func(s *Permits, c *transport.Call) { s.Release(c, at, strings.Join(ids, ""), IDSize) })
}

func setPermits(l string, n int64) vector {
	return onSemaphore("set permits", l, func(s *Permits, c *transport.Call) { s.Set(c, n) })
}

func countPermits(l string, at int64) vector {
	return onSemaphore("count permits", l, func(s *Permits, c *transport.Call) { s.Count(c, at) })
}
