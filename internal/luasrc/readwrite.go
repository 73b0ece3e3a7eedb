package luasrc

import (
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// The scripts for the read/write lock. The writer also uses [Reenter] and [Renew], and both roles use [Replicate].
var (
	ReadAcquire           = load("read_acquire", guard)
	ReadReenter           = load("read_reenter")        // reenters the lock as a reader; may run twice with a target
	ReadRelease           = load("read_release")        // lowers an unshared count to a target; may run late or twice
	ReadReleaseShared     = load("read_release_shared") // lowers a shared count by one, with Redisson's latch
	ReadRenew             = load("read_renew")
	WriteAcquire          = load("write_acquire", guard)
	WriteRelease          = load("write_release")        // lowers an unshared count to a target; may run late or twice
	WriteReleaseShared    = load("write_release_shared") // lowers a shared count by one, with Redisson's latch
	ReadWriteForceRelease = load("rw_force_release")     // frees the lock in one mode regardless of its holders
	ReadWriteInspect      = load("rw_inspect")
	UndeclaredKey         = load("undeclared_key") // reads an undeclared key, which some servers reject
)

// Role is [Reader] or [Writer].
type Role struct {
	acquire, reenter, release, releaseShared *transport.Script

	// keys is the number of keys of acquire and reenter. For a reader, they include the channel, so that the script
	// does not run while the slot is being moved, because the keys of the individual holds cannot be declared.
	keys int

	mode, message any
}

// The roles. The methods of ReadWrite identify a writer by its protocol.WriterField.
var (
	Reader = Role{ReadAcquire, ReadReenter, ReadRelease, ReadReleaseShared, 2, protocol.ModeRead, protocol.MessageUnlock}
	Writer = Role{WriteAcquire, Reenter, WriteRelease, WriteReleaseShared, 1, protocol.ModeWrite, protocol.MessageWriterLeft}
)

// ReadWrite fills calls to the scripts for one read/write lock in one role.
type ReadWrite struct {
	Role *Role
	// The names of the lock and its channel, both of which are strings.
	Key, Channel any
	Publish      any // PUBLISH or SPUBLISH
}

// Acquire fills c with [ReadAcquire] or [WriteAcquire].
func (l *ReadWrite) Acquire(c *transport.Call, owner, lease any) {
	l.take(c, l.Role.acquire)
	c.Args = append(c.Args, owner, lease)
}

// Reenter fills c with [ReadReenter] or [Reenter].
func (l *ReadWrite) Reenter(c *transport.Call, owner, lease any, target int64) {
	l.take(c, l.Role.reenter)
	c.Args = append(c.Args, owner, lease, target)
}

func (l *ReadWrite) take(c *transport.Call, script *transport.Script) {
	c.Script, c.NumKeys = script, l.Role.keys
	if c.Args = append(c.Args, l.Key); l.Role.keys == 2 {
		c.Args = append(c.Args, l.Channel)
	}
}

// Release fills c with [ReadRelease] or [WriteRelease].
func (l *ReadWrite) Release(c *transport.Call, owner, lease any, target int64) {
	fill(c, l.Role.release, 2, l.Key, l.Channel, owner, lease, target, l.Publish, l.Role.message)
}

// ReleaseShared fills c with [ReadReleaseShared] or [WriteReleaseShared].
func (l *ReadWrite) ReleaseShared(c *transport.Call, latch string, owner, lease any) {
	fill(c, l.Role.releaseShared, 3, l.Key, l.Channel, latch, owner, lease, l.Publish, l.Role.message, latchMillis)
}

// ForceRelease fills c with [ReadWriteForceRelease] for the role.
func (l *ReadWrite) ForceRelease(c *transport.Call) {
	fill(c, ReadWriteForceRelease, 2, l.Key, l.Channel, l.Role.mode, l.Publish, l.Role.message)
}

// Inspect fills c with [ReadWriteInspect].
func (l *ReadWrite) Inspect(c *transport.Call) { fill(c, ReadWriteInspect, 2, l.Key, l.Channel) }

// FillReadRenew fills c with [ReadRenew] for n readers.
func FillReadRenew(c *transport.Call, n int, reader func(i int) (key, owner, lease any)) {
	fillRenew(c, ReadRenew, n, 1, reader)
	first, _ := c.Args[0].(string)
	c.Args[n] = protocol.ReadWriteChannel(first)
	c.NumKeys++
}
