package oracle

import (
	"slices"
	"strings"

)

// ReadWrite is the read/write lock. A step's owner is the reader; the writer is the same with
// ":write" behind it.
var ReadWrite = Kind{
	Name: "readwrite",
	Operations: []*Operation{
		ReadAcquire, ReadFree, ReadForce, ReadRenew,
		WriteAcquire, WriteFree, WriteForce, WriteRenew,
	},
}

// The messages of Redisson's read/write lock: what a reader and what a writer sends.
const readerLeft, writerLeft = "0", "1"

// ReadAcquire lets a reader in, or in again.
var ReadAcquire = &Operation{
	Name:      "read-acquire",
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{[]string{s.Names[0], s.timeouts()}, []string{decimal(s.Lease), s.Owner, s.writer()}}}
	},
}

// ReadFree gives a read hold back.
var ReadFree = &Operation{
	Name: "read-release",
	Theirs: func(r Release, s Step) []Args {
		a := Args{
			[]string{s.Names[0], rwChannel(s.Names[0]), s.timeouts(), timeoutPrefix(s.Names[0])},
			[]string{readerLeft, s.Owner},
		}
		return []Args{s.published(r, a)}
	},
}

// ReadForce takes a lock that is read from all readers.
var ReadForce = &Operation{
	Name: "read-force",
	Theirs: func(r Release, s Step) []Args { return []Args{s.forced(r, readerLeft)} },
}

// ReadRenew sets the leases of read holds.
var ReadRenew = &Operation{
	Name:     "read-renew",
	OneByOne: func(r Release) bool { return !r.RenewsBatches() },
	Theirs: func(r Release, s Step) []Args {
		var each []Args
		batch := Args{nil, []string{decimal(s.Lease)}}
		for _, name := range s.Names {
			pair := []string{name, timeoutPrefix(name)}
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
}

// WriteAcquire lets a writer in, or in again.
var WriteAcquire = &Operation{
	Name:      "write-acquire",
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{s.Names, []string{decimal(s.Lease), s.writer()}}}
	},
}

// WriteFree gives a write hold back.
var WriteFree = &Operation{
	Name: "write-release",
	Theirs: func(r Release, s Step) []Args {
		a := Args{[]string{s.Names[0], rwChannel(s.Names[0])}, []string{writerLeft, decimal(s.Lease), s.writer()}}
		return []Args{s.published(r, a)}
	},
}

// WriteForce takes a lock from its writer, and from the readers that it lets in beside it.
var WriteForce = &Operation{
	Name: "write-force",
	Theirs: func(r Release, s Step) []Args { return []Args{s.forced(r, writerLeft)} },
}

// WriteRenew sets the leases of locks that a writer holds. It is the plain lock's script.
var WriteRenew = &Operation{
	Name:     "write-renew",
	OneByOne: Renew.OneByOne,
	Theirs:   func(r Release, s Step) []Args { return Renew.Theirs(r, s.asWriter()) },
}

// writer is the field of the step's owner as a writer.
func (s Step) writer() string { return s.Owner + ":write" }

// asWriter is the step as the plain lock's scripts take it.
func (s Step) asWriter() Step {
	s.Owner = s.writer()
	return s
}

// timeouts is how the keys of the reader's holds begin: a number follows.
func (s Step) timeouts() string {
	name := s.Names[0]
	return timeoutPrefix(name) + ":" + s.Owner + ":rwlock_timeout"
}

// holdKey is the key of one hold of the step's reader.
func (s Step) holdKey(n int64) string { return s.timeouts() + ":" + decimal(n) }

// timeoutPrefix is how the keys of all readers of a lock begin.
func timeoutPrefix(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// rwChannel is the channel of a read/write lock.
func rwChannel(name string) string { return "redisson_rwlock:" + timeoutPrefix(name) }

// published completes the arguments of a release of a release of Redisson.
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
	a := Args{[]string{s.Names[0], rwChannel(s.Names[0])}, []string{message}}
	if r.NamesPublish() {
		a.Argv = append(a.Argv, "PUBLISH")
	}
	return a
}

// isReadWrite tells whether a step is about a read/write lock.
func (s Step) isReadWrite() bool { return slices.Contains(ReadWrite.Operations, s.Op) }

