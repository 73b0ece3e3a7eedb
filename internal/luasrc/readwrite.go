package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of the read/write lock. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [ReadWrite] and [FillReadRenew] fill calls of them. The writer
// enters again with [Reenter] and is renewed with [Renew], and both roles are written once
// more with [Replicate].
var (
	ReadAcquire           = guarded("read_acquire")      // takes the lock as a reader
	ReadReenter           = load("read_reenter")         // enters it as a reader; may run twice with a target
	ReadRelease           = load("read_release")         // lowers an unshared count to a target; may run late or twice
	ReadReleaseShared     = load("read_release_shared")  // lowers a shared count by one, with Redisson's latch
	ReadRenew             = load("read_renew")           // extends the leases of readers that hold their locks still
	WriteAcquire          = guarded("write_acquire")     // takes the lock as the writer
	WriteRelease          = load("write_release")        // lowers an unshared count to a target; may run late or twice
	WriteReleaseShared    = load("write_release_shared") // lowers a shared count by one, with Redisson's latch
	ReadWriteForceRelease = load("rw_force_release")     // frees the lock in one mode, whichever owners hold it
	ReadWriteInspect      = load("rw_inspect")           // reads the lock
	UndeclaredKey         = load("undeclared_key")       // reads a key that it does not declare, which some servers refuse
)

// Role is one of the two roles of a read/write lock: [Reader] or [Writer].
type Role struct {
	acquire, reenter, release, releaseShared *transport.Script

	// keys is how many keys those have that take the lock: a reader's holds have keys, too,
	// whose names the script alone knows, so that the channel stands for them.
	keys int

	mode, message any // boxed once
}

// The roles. Owners of a writer are as codec.WriterField has them.
var (
	Reader = Role{ReadAcquire, ReadReenter, ReadRelease, ReadReleaseShared, 2, codec.ModeRead, codec.MessageUnlock}
	Writer = Role{WriteAcquire, Reenter, WriteRelease, WriteReleaseShared, 1, codec.ModeWrite, codec.MessageWriterLeft}
)

// ReadWrite fills calls of the scripts for one role of one lock, as [Plain] does.
type ReadWrite struct {
	// Role is that of the owners that the calls are about.
	Role *Role
	// Key and Channel are the names of the lock and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Acquire fills c with a call of [ReadAcquire] or [WriteAcquire].
func (l *ReadWrite) Acquire(c *transport.Call, owner, lease any) {
	l.take(c, l.Role.acquire)
	c.Args = append(c.Args, owner, lease)
}

// Reenter fills c with a call of [ReadReenter] or [Reenter].
func (l *ReadWrite) Reenter(c *transport.Call, owner, lease any, target int64) {
	l.take(c, l.Role.reenter)
	c.Args = append(c.Args, owner, lease, target)
}

// take begins a call that takes the lock.
func (l *ReadWrite) take(c *transport.Call, script *transport.Script) {
	c.Script, c.NumKeys = script, l.Role.keys
	if c.Args = append(c.Args, l.Key); l.Role.keys == 2 {
		c.Args = append(c.Args, l.Channel)
	}
}

// Release fills c with a call of [ReadRelease] or [WriteRelease].
func (l *ReadWrite) Release(c *transport.Call, owner, lease any, target int64) {
	fill(c, l.Role.release, 2, l.Key, l.Channel, owner, lease, target, l.Publish, l.Role.message)
}

// ReleaseShared fills c with a call of [ReadReleaseShared] or [WriteReleaseShared].
func (l *ReadWrite) ReleaseShared(c *transport.Call, latch string, owner, lease any) {
	fill(c, l.Role.releaseShared, 3, l.Key, l.Channel, latch, owner, lease, l.Publish, l.Role.message, latchMillis)
}

// ForceRelease fills c with a call of [ReadWriteForceRelease] for a lock that is held in the
// role.
func (l *ReadWrite) ForceRelease(c *transport.Call) {
	fill(c, ReadWriteForceRelease, 2, l.Key, l.Channel, l.Role.mode, l.Publish, l.Role.message)
}

// Inspect fills c with a call of [ReadWriteInspect].
func (l *ReadWrite) Inspect(c *transport.Call) { fill(c, ReadWriteInspect, 2, l.Key, l.Channel) }

// FillReadRenew fills c with a call of [ReadRenew] for n readers, as [FillRenew] does.
func FillReadRenew(c *transport.Call, n int, reader func(i int) (key, owner, lease any)) {
	c.Script, c.NumKeys = ReadRenew, n+1
	c.Args = slices.Grow(c.Args, 3*n+1)[:3*n+1]
	for i := range n {
		c.Args[i], c.Args[n+1+2*i], c.Args[n+2+2*i] = reader(i)
	}
	first, _ := c.Args[0].(string)
	c.Args[n] = codec.ReadWriteChannel(first)
}
