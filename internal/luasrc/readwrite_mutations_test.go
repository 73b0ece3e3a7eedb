package luasrc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
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

func TestReadWriteVectorsNoticeMistakesInTheScripts(t *testing.T) {
	testlevel.All(t, "replays the vectors for each mistake")
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Parallel()
	s := newQuietStage(t, redistest.Start(t))
	for _, m := range readWriteMutations {
		s.mistake(m)
		noticed := slices.ContainsFunc(readWriteScenarios, func(sc scenario) bool { return s.play(sc) != nil })
		assert.True(t, noticed, "%s with %q in place of %q", m.script.Name(), m.new, m.old)
	}
}

var readWriteMutations = []mutation{
	{ReadAcquire, "if left < millis then", "if true then"},
	{ReadAcquire, "if left < millis then", "if left >= 0 and left < millis then"},
	{ReadAcquire, "if most > millis then", "if false then"},
	{ReadAcquire, "        if redis.call('HGET', lock, 'mode') == 'write' then\n            return\n        end\n", ""},
	{ReadAcquire, "last_for(lock, left, tonumber(lease))\nset", "if left > -2 then last_for(lock, left, tonumber(lease)) end\nset"},
	{ReadAcquire, "mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 1", "false"},
	{ReadAcquire, "mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 1", "mode == 'write'"},
	{ReadAcquire, "if mode ~= 'read' and not writes then", "if mode == 'write' and not writes then"},
	{ReadAcquire, "if left == -2 then", "if left < 0 then"},
	{ReadAcquire, "if left == -1 then\n    set_hold(lock, owner, count, lease)\nend\n", ""},
	{ReadAcquire, "'mode', 'read', owner, count)", "'mode', 'read')"},
	{ReadAcquire, ", '1', 'PX', lease)", ", '1')"},
	{ReadAcquire, "set_hold(lock, owner, count, lease)\nreturn", "set_hold(lock, owner, count, math.max(lease, left))\nreturn"},
	{ReadAcquire, "set_hold(lock, owner, count, lease)\nreturn", "set_hold(lock, owner, 1, lease)\nreturn"},
	{ReadAcquire, "if tonumber(lease) > 0 then", "if true then"},
	{ReadReenter, " or most < -1", ""},
	{ReadReenter, "if not writes and", "if"},
	{ReadReenter, "if count < target then", "if true then"},
	{ReadReenter, "most = math.max(most, lease)\n", "most = lease\n"},
	{ReadReenter, "for k = 1, count do\n    set_hold", "for k = count, count do\n    set_hold"},
	{ReadReenter, "left >= 0 and left < millis", "left >= 0"},
	{ReadReenter, "left >= 0 and left < millis", "left < millis"},
	{ReadReenter, "target = count + 1", "target = count"},
	{ReadRelease, "count <= target then", "count < target then"},
	{ReadRelease, "for k = target + 1, count do", "for k = count, count do"},
	{ReadRelease, "    redis.call('HDEL', lock, owner)\n", ""},
	{ReadRelease, "        redis.call('PEXPIRE', hold_key(lock, owner, k), lease)\n", ""},
	{ReadRelease, "    if mode == 'write' then", "    if false then"},
	{ReadRelease, " and mode == 'read' then", " then"},
	{ReadRelease, "fields == 1 and count == 1", "count == 1"},
	{ReadRelease, "fields == 1 and count == 1", "fields == 1"},
	{ReadRelease, "redis.call('DEL', lock, hold_key(lock, owner, 1))", "redis.call('DEL', lock)"},
	{ReadRelease, "    for k = 1, count do", "    for k = count, count do"},
	{ReadRelease, "left >= 0 and left < millis", "left > millis"},
	{ReadRelease, "        last_as(lock, longest, most)\n", ""},
	{ReadRelease, "    if most > 0 then\n", "    if redis.call('HLEN', lock) > 1 then\n"},
	{ReadRelease, "        redis.call(publish, channel, message)\n", ""},
	{ReadRelease, "    redis.call(publish, channel, message)\n    return 1\nend\n", "    return 1\nend\n"},
	{ReadRelease, "local lasts = fields > 5 and", "local lasts = fields > 4 and"},
	{ReadRelease, "if fields > 17 and lasts", "if fields > 5 and lasts"},
	{ReadRelease, "            if left == enough then\n", "            if left > 0 and enough then\n"},
	{ReadRelease, "most > 0 and most ~= lasts then", "most > lasts then"},
	{ReadRelease, "if more == lasts or more > 0 and lasts > left then", "if lasts > left then"},
	{ReadRelease, "if more == lasts or more > 0 and lasts > left then", "if more > 0 then"},
	{ReadRelease, "lasts > 0 and outlived", "outlived"},
	{ReadRelease, "left = math.max(left, redis.call('PTTL', key))", "left = 0"},
	{ReadReleaseShared, "left = math.max(left, redis.call('PTTL', key))", "left = 0"},
	{ReadReleaseShared, "if before then\n    return tonumber(before)\nend\n", ""},
	{ReadReleaseShared, "left ~= -1 and left < most", "false"},
	{ReadReleaseShared, "left ~= -1 and left < most", "true"},
	{ReadReleaseShared, "left ~= -1 and left < most", "left >= 0 and left < most"},
	{ReadReleaseShared, "    local most = redis.call('PTTL', last)\n", "    local most = -3\n"},
	{ReadReleaseShared, "        most = math.max(most, redis.call('PTTL', hold_key(lock, owner, k)))\n", ""},
	{ReadReleaseShared, "most > -2 and math.max(most, tonumber(lease)) or -2", "math.max(most, tonumber(lease))"},
	{ReadReleaseShared, "most > -2 and math.max(most, tonumber(lease)) or -2", "most"},
	{ReadReleaseShared, "            set_hold(lock, owner, k, most)\n", "            redis.call('PEXPIRE', hold_key(lock, owner, k), most)\n"},
	{ReadReleaseShared, "            set_hold(lock, owner, k, most)\n", "            redis.call('SET', hold_key(lock, owner, k), '1')\n"},
	{ReadReleaseShared, "redis.call('SET', latch, free, 'PX', ttl)\n", ""},
	{ReadReleaseShared, "    redis.call('SET', latch, 2, 'PX', ttl)\n", ""},
	{ReadReleaseShared, "    redis.call('DEL', last)\n", ""},
	{ReadReleaseShared, "    redis.call('DEL', last)\n", "    redis.call('DEL', hold_key(lock, owner, 1))\n"},
	{ReadRenew, "if redis.call('PTTL', held[k]) < lease then", "if true then"},
	{ReadRenew, "if redis.call('PTTL', key) > -2 then", "if true then"},
	{ReadRenew, "last_for(lock, redis.call('PTTL', lock), lease)", "redis.call('PEXPIRE', lock, lease)"},
	{ReadRenew, "if renewed[i] == 1 then", "if false then"},
	{ReadRenew, "    if renewed[i] == 1 then\n        last_for", "    if redis.call('PTTL', lock) ~= -1 then\n        last_for"},
	{ReadRenew, "if most > millis then", "if false then"},
	{ReadRenew, "        if redis.call('HGET', lock, 'mode') == 'write' then\n            return\n        end\n", ""},
	{ReadRenew, "redis.pcall", "redis.call"},
	{ReadRenew, "    for k = 1, hold_count(text) do", "    for k = hold_count(text), hold_count(text) do"},
	{WriteAcquire, " and redis.call('EXISTS', lock) == 0", ""},
	{WriteAcquire, "    lengthen(lock, tonumber(lease))\n", ""},
	{WriteAcquire, "    lengthen(lock, tonumber(lease))\n", "    redis.call('PEXPIRE', lock, redis.call('PTTL', lock) + tonumber(lease))\n"},
	{WriteAcquire, "left >= 0 and left < millis", "left < millis"},
	{WriteAcquire, "mode == 'write' and redis.call('HEXISTS', lock, owner) == 1", "mode"},
	{WriteAcquire, "if mode ~= 'read' and mode ~= 'write' then", "if false then"},
	{WriteRelease, "if tonumber(count) > target then", "if true then"},
	{WriteRelease, "math.max(lease, (longest_read(lock)))", "lease"},
	{WriteRelease, "        redis.call('HSET', lock, 'mode', 'read')\n", ""},
	{WriteRelease, "        last_as(lock, longest, most)\n", ""},
	{WriteRelease, "        last_as(lock, longest, most)\n", "        last_as(lock, longest, math.max(most, redis.call('PTTL', lock)))\n"},
	{WriteRelease, "most, longest = longest_read(lock)", "most, longest = redis.call('HLEN', lock) - 1, ''"},
	{WriteRelease, "most, longest = longest_read(lock)", "most, longest = 0"},
	{WriteRelease, "    redis.call(publish, channel, message)\n", ""},
	{WriteRelease, "    else\n        redis.call('DEL', lock)\n    end\n    redis.call(publish, channel, message)\n", "    else\n        redis.call('DEL', lock)\n        redis.call(publish, channel, message)\n    end\n"},
	{WriteReleaseShared, "if before then\n    return tonumber(before)\nend\n", ""},
	{WriteReleaseShared, "math.max(lease, (longest_read(lock)))", "lease"},
	{WriteReleaseShared, "lengthen(lock, math.max(", "redis.call('PEXPIRE', lock, math.max("},
	{WriteReleaseShared, "left >= 0 and left < millis", "left < millis"},
	{WriteReleaseShared, "        last_as(lock, longest, most)\n", "        lengthen(lock, most)\n"},
	{WriteReleaseShared, "    over = 1\n", ""},
	{WriteReleaseShared, "redis.call('SET', latch, over, 'PX', ttl)\n", ""},
	{ReadWriteForceRelease, "if redis.call('HGET', lock, 'mode') ~= mode then", "if redis.call('EXISTS', lock) == 0 then"},
	{ReadWriteForceRelease, "redis.call(publish, channel, message)\n", ""},
	{ReadWriteInspect, "most = math.max(most, ", "most = math.min(most, "},
}
