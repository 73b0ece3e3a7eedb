package oracle

import (
	"strings"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// ReadWrite is the read/write lock. A step's owner is the reader; the writer is the same with
// ":write" behind it.
var ReadWrite = Kind{
	Name: "readwrite",
	Operations: []*Operation{
		ReadAcquire, ReadFree, ReadForce, ReadRenew,
		WriteAcquire, WriteFree, WriteForce, WriteRenew,
	},
	Diverges: rwDiverges,
	Cases:    rwCases(),
}

// rwAct is what an operation does to a read/write lock.
type rwAct int

const (
	_ rwAct = iota
	rwAcquire
	rwFree
	rwForce
	rwRenew
)

// ReadAcquire lets a reader in, or in again.
var ReadAcquire = &Operation{
	Name:      "read-acquire",
	act:       rwAcquire,
	Redates:   true,
	Check:     isAsContracted,
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{[]string{s.Names[0], s.timeouts()}, []string{decimal(s.Lease), s.Owner, s.writer()}}}
	},
	Ours: rwOursAcquire,
}

// ReadFree gives a read hold back.
var ReadFree = &Operation{
	Name:    "read-release",
	act:     rwFree,
	Redates: true,
	Check:   isAsContracted,
	Theirs: func(r Release, s Step) []Args {
		a := Args{
			[]string{s.Names[0], codec.ReadWriteChannel(s.Names[0]), s.timeouts(), braced(s.Names[0])},
			[]string{codec.MessageUnlock, s.Owner},
		}
		return []Args{s.published(r, a)}
	},
	Ours: rwOursFree,
}

// ReadForce takes a lock that is read from all readers.
var ReadForce = &Operation{
	Name:    "read-force",
	act:     rwForce,
	Redates: true,
	Check:   isAsContracted,
	Theirs:  func(r Release, s Step) []Args { return []Args{s.forced(r, codec.MessageUnlock)} },
	Ours:    rwOursForce,
}

// ReadRenew sets the leases of read holds.
var ReadRenew = &Operation{
	Name:     "read-renew",
	act:      rwRenew,
	Redates:  true,
	Check:    isAsContracted,
	OneByOne: func(r Release) bool { return !r.RenewsBatches() },
	Theirs: func(r Release, s Step) []Args {
		var each []Args
		batch := Args{nil, []string{decimal(s.Lease)}}
		for _, name := range s.Names {
			pair := []string{name, braced(name)}
			each = append(each, Args{pair, []string{decimal(s.Lease), s.Owner}})
			batch.Keys = append(batch.Keys, pair...)
			if r.RenewsOwnReaders() {
				batch.Argv = append(batch.Argv, "1") // how many readers of the name follow
			}
			batch.Argv = append(batch.Argv, s.Owner)
		}
		if r.RenewsBatches() {
			return []Args{batch}
		}
		return each
	},
	Ours: func(s Step, _ bool) Call {
		return filled(func(c *transport.Call) {
			luasrc.FillReadRenew(c, len(s.Names), func(i int) (key, owner, lease any) { return s.Names[i], s.Owner, s.Lease })
		})
	},
}

// WriteAcquire lets a writer in, or in again.
var WriteAcquire = &Operation{
	Name:      "write-acquire",
	act:       rwAcquire,
	Redates:   true,
	writes:    true,
	Check:     isAsContracted,
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{s.Names, []string{decimal(s.Lease), s.writer()}}}
	},
	Ours: rwOursAcquire,
}

// WriteFree gives a write hold back.
var WriteFree = &Operation{
	Name:    "write-release",
	act:     rwFree,
	Redates: true,
	writes:  true,
	Check:   isAsContracted,
	Theirs: func(r Release, s Step) []Args {
		a := Args{[]string{s.Names[0], codec.ReadWriteChannel(s.Names[0])}, []string{codec.MessageWriterLeft, decimal(s.Lease), s.writer()}}
		return []Args{s.published(r, a)}
	},
	Ours: rwOursFree,
}

// WriteForce takes a lock from its writer, and from the readers that it lets in beside it.
var WriteForce = &Operation{
	Name:    "write-force",
	act:     rwForce,
	Redates: true,
	writes:  true,
	Check:   isAsContracted,
	Theirs:  func(r Release, s Step) []Args { return []Args{s.forced(r, codec.MessageWriterLeft)} },
	Ours:    rwOursForce,
}

// WriteRenew sets the leases of locks that a writer holds. It is the plain lock's script.
var WriteRenew = &Operation{
	Name:     "write-renew",
	act:      rwRenew,
	Redates:  true,
	writes:   true,
	Check:    isAsContracted,
	OneByOne: Renew.OneByOne,
	Theirs:   func(r Release, s Step) []Args { return Renew.Theirs(r, s.asWriter()) },
	Ours:     func(s Step, shared bool) Call { return Renew.Ours(s.asWriter(), shared) },
}

// writer is the field of the step's owner as a writer.
func (s Step) writer() string { return codec.WriterField(s.Owner) }

// asWriter is the step as the plain lock's scripts take it.
func (s Step) asWriter() Step {
	s.Owner = s.writer()
	return s
}

// Field is the field of the lock's hash that the step is about.
func (s Step) Field() string {
	if s.Op.writes {
		return s.writer()
	}
	return s.Owner
}

// isRead and isWrite tell what the step does, and in which role.
func (s Step) isRead(a rwAct) bool  { return s.Op.act == a && !s.Op.writes }
func (s Step) isWrite(a rwAct) bool { return s.Op.act == a && s.Op.writes }

// Latch is the key of the latch that a release by a Redisson leaves.
func (s Step) Latch() string { return s.latch() }

// HoldKey is the key of one hold of the step's owner as a reader.
func (s Step) HoldKey(n int64) string { return codec.HoldKey(s.Names[0], s.Owner, n) }

// timeouts is how the keys of the reader's holds begin, as Redisson is told.
func (s Step) timeouts() string {
	key := s.HoldKey(1)
	return key[:len(key)-len(":1")]
}

// braced is how the keys of all readers of a lock begin.
func braced(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// published completes the arguments of a release of a lock by a release of Redisson.
func (s Step) published(r Release, a Args) Args {
	if r.NamesPublish() {
		a.Argv = append(a.Argv, "PUBLISH")
	}
	if r.HasLatch() {
		a.Keys, a.Argv = append(a.Keys, s.latch()), append(a.Argv, latchTTL)
	}
	return a
}

func (s Step) forced(r Release, message string) Args {
	a := Args{[]string{s.Names[0], codec.ReadWriteChannel(s.Names[0])}, []string{message}}
	if r.NamesPublish() {
		a.Argv = append(a.Argv, "PUBLISH")
	}
	return a
}

// role is a call of ours about the step's lock, in the step's role.
func (s Step) role(fill func(l *luasrc.ReadWrite, c *transport.Call)) Call {
	name, role := s.Names[0], &luasrc.Reader
	if s.Op.writes {
		role = &luasrc.Writer
	}
	l := luasrc.ReadWrite{Role: role, Key: name, Channel: codec.ReadWriteChannel(name), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

func rwOursAcquire(s Step, shared bool) Call {
	return s.role(func(l *luasrc.ReadWrite, c *transport.Call) {
		switch {
		case s.Target == 0:
			l.Acquire(c, s.Field(), s.Lease)
		case shared: // the count is unknown
			l.Reenter(c, s.Field(), s.Lease, 0)
		default:
			l.Reenter(c, s.Field(), s.Lease, s.Target)
		}
	})
}

func rwOursFree(s Step, shared bool) Call {
	return s.role(func(l *luasrc.ReadWrite, c *transport.Call) {
		if shared {
			l.ReleaseShared(c, s.latch(), s.Field(), s.Lease)
			return
		}
		l.Release(c, s.Field(), s.Lease, s.Target)
	})
}

func rwOursForce(s Step, _ bool) Call {
	return s.role(func(l *luasrc.ReadWrite, c *transport.Call) { l.ForceRelease(c) })
}
