package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of the read/write lock. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Read], [Write] and [FillReadRenew] fill calls of them. The writer
// enters again with [Reenter] and is renewed with [Renew], and both roles are written once
// more with [Replicate].
var (
	// ReadAcquire takes a lock as a reader. It runs six commands on a free lock.
	ReadAcquire = load("read_acquire")

	// ReadReenter enters a lock as a reader for an owner that is a reader, or the writer.
	// With a target it may run more than once.
	ReadReenter = load("read_reenter")

	// ReadRelease lowers the count of a reader that one process alone uses to a target. It
	// may run late or twice. It asks for the time left of each hold of each other reader.
	ReadRelease = load("read_release")

	// ReadReleaseShared lowers the count of a reader that several processes may use by one,
	// with Redisson's latch.
	ReadReleaseShared = load("read_release_shared")

	// ReadRenew extends the leases of readers that hold their locks still. It never creates a
	// key and never shortens a time to live.
	ReadRenew = load("read_renew")

	// WriteAcquire takes a lock as the writer. It runs five commands on a free lock.
	WriteAcquire = load("write_acquire")

	// WriteRelease lowers the count of a writer that one process alone uses to a target. It
	// may run late or twice.
	WriteRelease = load("write_release")

	// WriteReleaseShared lowers the count of a writer that several processes may use by one,
	// with Redisson's latch.
	WriteReleaseShared = load("write_release_shared")

	// ReadWriteForceRelease frees a lock in one mode, whichever owners hold it.
	ReadWriteForceRelease = load("rw_force_release")

	// ReadWriteInspect reads a lock. It changes nothing.
	ReadWriteInspect = load("rw_inspect")
)

// Read fills calls of the scripts for the readers of one lock, as [Plain] does.
type Read struct {
	// Key and Channel are the names of the lock and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Acquire fills c with a call of [ReadAcquire].
func (r *Read) Acquire(c *transport.Call, owner, lease any) {
	c.Script, c.NumKeys = ReadAcquire, 1
	c.Args = append(c.Args, r.Key, owner, lease)
}

// Reenter fills c with a call of [ReadReenter].
func (r *Read) Reenter(c *transport.Call, owner, lease any, target int64) {
	c.Script, c.NumKeys = ReadReenter, 1
	c.Args = append(c.Args, r.Key, owner, lease, target)
}

// Release fills c with a call of [ReadRelease].
func (r *Read) Release(c *transport.Call, owner, lease any, target int64) {
	c.Script, c.NumKeys = ReadRelease, 2
	c.Args = append(c.Args, r.Key, r.Channel, owner, lease, target, r.Publish, codec.MessageUnlock)
}

// ReleaseShared fills c with a call of [ReadReleaseShared].
func (r *Read) ReleaseShared(c *transport.Call, latch string, owner, lease any) {
	c.Script, c.NumKeys = ReadReleaseShared, 3
	c.Args = append(c.Args, r.Key, r.Channel, latch, owner, lease, r.Publish, codec.MessageUnlock, latchMillis)
}

// ForceRelease fills c with a call of [ReadWriteForceRelease] for a lock that is read.
func (r *Read) ForceRelease(c *transport.Call) {
	c.Script, c.NumKeys = ReadWriteForceRelease, 2
	c.Args = append(c.Args, r.Key, r.Channel, codec.ModeRead, r.Publish, codec.MessageUnlock)
}

// Inspect fills c with a call of [ReadWriteInspect].
func (r *Read) Inspect(c *transport.Call) {
	c.Script, c.NumKeys = ReadWriteInspect, 1
	c.Args = append(c.Args, r.Key)
}

// Write fills calls of the scripts for the writer of one lock, as [Read] does. Owners are as
// a writer has them, see [codec.WriterField].
type Write struct {
	// Key and Channel are the names of the lock and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Acquire fills c with a call of [WriteAcquire].
func (w *Write) Acquire(c *transport.Call, owner, lease any) {
	c.Script, c.NumKeys = WriteAcquire, 1
	c.Args = append(c.Args, w.Key, owner, lease)
}

// Reenter fills c with a call of [Reenter].
func (w *Write) Reenter(c *transport.Call, owner, lease any, target int64) {
	c.Script, c.NumKeys = Reenter, 1
	c.Args = append(c.Args, w.Key, owner, lease, target)
}

// Release fills c with a call of [WriteRelease].
func (w *Write) Release(c *transport.Call, owner, lease any, target int64) {
	c.Script, c.NumKeys = WriteRelease, 2
	c.Args = append(c.Args, w.Key, w.Channel, owner, lease, target, w.Publish, codec.MessageWriterLeft)
}

// ReleaseShared fills c with a call of [WriteReleaseShared].
func (w *Write) ReleaseShared(c *transport.Call, latch string, owner, lease any) {
	c.Script, c.NumKeys = WriteReleaseShared, 3
	c.Args = append(c.Args, w.Key, w.Channel, latch, owner, lease, w.Publish, codec.MessageWriterLeft, latchMillis)
}

// ForceRelease fills c with a call of [ReadWriteForceRelease] for a lock that is written.
func (w *Write) ForceRelease(c *transport.Call) {
	c.Script, c.NumKeys = ReadWriteForceRelease, 2
	c.Args = append(c.Args, w.Key, w.Channel, codec.ModeWrite, w.Publish, codec.MessageWriterLeft)
}

// Inspect fills c with a call of [ReadWriteInspect].
func (w *Write) Inspect(c *transport.Call) {
	c.Script, c.NumKeys = ReadWriteInspect, 1
	c.Args = append(c.Args, w.Key)
}

// FillReadRenew fills c with a call of [ReadRenew] for n readers, as [FillRenew] does.
func FillReadRenew(c *transport.Call, n int, reader func(i int) (key, owner, lease any)) {
	c.Script, c.NumKeys = ReadRenew, n
	c.Args = slices.Grow(c.Args, 3*n)[:3*n]
	for i := range n {
		c.Args[i], c.Args[n+2*i], c.Args[n+2*i+1] = reader(i)
	}
}
