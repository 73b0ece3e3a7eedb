package oracle

import (
	"strings"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// ReadWrite is the read/write lock.
var ReadWrite = Kind{
	Name: "readwrite",
	Operations: []*Operation{
		ReadAcquire, ReadFree, ReadForce, ReadRenew,
		WriteAcquire, WriteFree, WriteForce, WriteRenew,
	},
	Diverges: rwDiverges,
}

// The operations of a read/write lock in both roles.
var (
	ReadAcquire = &Operation{
		Name: "read-acquire", act: enter, role: &luasrc.Reader, TellsTime: true, Ours: rwOursAcquire,
		Theirs: func(_ Release, s Step) Args {
			return Args{[]string{s.Names[0], s.timeouts()}, []string{decimal(s.Lease), s.Owner, s.writer()}}
		},
	}
	ReadFree = &Operation{
		Name: "read-release", act: free, role: &luasrc.Reader, Ours: rwOursFree,
		Theirs: func(r Release, s Step) Args {
			name := s.Names[0]
			return s.released(r, Args{
				[]string{name, protocol.ReadWriteChannel(name), s.timeouts(), braced(name)},
				[]string{protocol.MessageUnlock, s.Owner},
			})
		},
	}
	ReadForce = &Operation{
		Name: "read-force", role: &luasrc.Reader, Ours: rwOursForce,
		Theirs: func(r Release, s Step) Args { return s.forced(r, protocol.MessageUnlock) },
	}
	ReadRenew = &Operation{
		Name: "read-renew", act: renew, role: &luasrc.Reader, OneByOne: Renew.OneByOne,
		Theirs: func(r Release, s Step) Args {
			batch := Args{nil, []string{decimal(s.Lease)}}
			for _, name := range s.Names {
				batch.Keys = append(batch.Keys, name, braced(name))
				if r.RenewsOwnReaders() {
					batch.Argv = append(batch.Argv, "1")
				}
				batch.Argv = append(batch.Argv, s.Owner)
			}
			return batch
		},
		Ours: func(s Step, _ bool) Call {
			return filled(func(c *transport.Call) {
				luasrc.FillReadRenew(c, len(s.Names), func(i int) (key, owner, lease any) { return s.Names[i], s.Owner, s.Lease })
			})
		},
	}
	WriteAcquire = &Operation{
		Name: "write-acquire", act: enter, role: &luasrc.Writer, TellsTime: true, Ours: rwOursAcquire,
		Theirs: func(_ Release, s Step) Args { return Args{s.Names, []string{decimal(s.Lease), s.writer()}} },
	}
	WriteFree = &Operation{
		Name: "write-release", act: free, role: &luasrc.Writer, Ours: rwOursFree,
		Theirs: func(r Release, s Step) Args {
			return s.released(r, Args{
				[]string{s.Names[0], protocol.ReadWriteChannel(s.Names[0])},
				[]string{protocol.MessageWriterLeft, decimal(s.Lease), s.writer()},
			})
		},
	}
	WriteForce = &Operation{
		Name: "write-force", role: &luasrc.Writer, Ours: rwOursForce,
		Theirs: func(r Release, s Step) Args { return s.forced(r, protocol.MessageWriterLeft) },
	}
	// WriteRenew is the plain lock's script.
	WriteRenew = &Operation{
		Name: "write-renew", act: renew, role: &luasrc.Writer,
		OneByOne: Renew.OneByOne, Theirs: Renew.Theirs, Ours: Renew.Ours,
	}
)

func (s Step) writer() string { return protocol.WriterField(s.Owner) }

// Field returns the step's field in the lock's hash.
func (s Step) Field() string {
	if s.Op.role == &luasrc.Writer {
		return s.writer()
	}
	return s.Owner
}

func (s Step) isRead(a act) bool  { return s.Op.act == a && s.Op.role == &luasrc.Reader }
func (s Step) isWrite(a act) bool { return s.Op.act == a && s.Op.role == &luasrc.Writer }

// HoldKey returns the key of the reader's n-th hold.
func (s Step) HoldKey(n int64) string { return protocol.HoldKey(s.Names[0], s.Owner, n) }

func (s Step) timeouts() string { return strings.TrimSuffix(s.HoldKey(1), ":1") }

func braced(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

func (s Step) forced(r Release, message string) Args {
	return r.publishing(Args{[]string{s.Names[0], protocol.ReadWriteChannel(s.Names[0])}, []string{message}})
}

func (s Step) inRole(fill func(l *luasrc.ReadWrite, c *transport.Call)) Call {
	name := s.Names[0]
	l := luasrc.ReadWrite{Role: s.Op.role, Key: name, Channel: protocol.ReadWriteChannel(name), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

func rwOursAcquire(s Step, shared bool) Call {
	return s.inRole(func(l *luasrc.ReadWrite, c *transport.Call) {
		if s.Target == 0 {
			l.Acquire(c, s.Field(), s.Lease)
			return
		}
		l.Reenter(c, s.Field(), s.Lease, s.aim(shared))
	})
}

func rwOursFree(s Step, shared bool) Call {
	return s.inRole(func(l *luasrc.ReadWrite, c *transport.Call) {
		if shared {
			l.ReleaseShared(c, s.Latch(), s.Field(), s.Lease)
			return
		}
		l.Release(c, s.Field(), s.Lease, s.Target)
	})
}

func rwOursForce(s Step, _ bool) Call {
	return s.inRole(func(l *luasrc.ReadWrite, c *transport.Call) { l.ForceRelease(c) })
}
