package oracle

import (
	"encoding/hex"
	"strings"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Permits is the semaphore whose permits have ids and expire.
var Permits = Kind{
	Name:       "permits",
	Operations: permitOperations,
	Diverges:   permitDiverges,
	Cases:      permitsCases(),
}

var permitOperations = []*Operation{
	PermitAcquire, PermitAcquireForEver, PermitRelease, PermitReleaseAll, PermitRenew, PermitLeft,
	PermitsFree, PermitsAll, PermitsOut, PermitsTrySet, PermitsSet, PermitsAdd,
}

// noEnd is the score of a permit that never expires.
const noEnd = 922337203685477

// PermitAcquire takes as many permits as there are ids, or none.
var PermitAcquire = &Operation{
	Name:   "acquire",
	does:   permitTake,
	Theirs: theirPermitAcquire,
	Ours: func(s Step, _ bool) Call {
		return s.permits(func(l *luasrc.Permits, c *transport.Call) { l.Acquire(c, s.Now, s.allIDs(), s.Lease) })
	},
	Check:   isAsPromised,
	Redates: true, // the permits' key gets what the counter has left
}

// PermitAcquireForEver takes a permit that never expires, which ours do not.
var PermitAcquireForEver = &Operation{Name: "acquire-for-ever", does: permitTakeForEver, Theirs: theirPermitAcquire}

func theirPermitAcquire(r Release, s Step) []Args {
	end := leaseEnd
	if s.Op.does == permitTakeForEver {
		end = decimal(noEnd)
	}
	a := Args{s.permitKeys(), []string{decimal(int64(len(s.IDs))), end}}
	if !r.TakesManyPermits() {
		a.Argv = append(a.Argv, s.rawID(0), clockNow, decimal(noEnd))
		return []Args{a}
	}
	a.Argv = append(a.Argv, clockNow, decimal(noEnd), "PUBLISH")
	a.Argv = append(a.Argv, s.rawIDs()...)
	return []Args{a}
}

// PermitRelease gives one permit back.
var PermitRelease = &Operation{
	Name: "release",
	does: permitGive,
	Theirs: func(r Release, s Step) []Args {
		n, t, c := s.permitNames()
		return []Args{s.told(r, Args{[]string{n, c, t}, []string{s.rawID(0), "1", clockNow}})}
	},
	Ours: func(s Step, _ bool) Call {
		return s.permits(func(l *luasrc.Permits, c *transport.Call) { l.Release(c, s.Now, s.allIDs(), luasrc.IDSize) })
	},
	Check: isAsPromised,
}

// PermitReleaseAll gives several back.
var PermitReleaseAll = &Operation{
	Name: "release-all",
	does: permitGiveAll,
	Has:  Release.TakesManyPermits,
	Theirs: func(_ Release, s Step) []Args {
		n, t, c := s.permitNames()
		argv := []string{decimal(int64(len(s.IDs))), clockNow, "PUBLISH"}
		return []Args{{[]string{n, c, t}, append(argv, s.rawIDs()...)}}
	},
	Ours: func(s Step, _ bool) Call {
		return s.permits(func(l *luasrc.Permits, c *transport.Call) { l.Release(c, s.Now, s.allIDs(), luasrc.IDSize) })
	},
	Check: isAsPromised,
}

// PermitRenew gives a permit another lease.
var PermitRenew = &Operation{
	Name: "renew",
	does: permitExtend,
	Theirs: func(r Release, s Step) []Args {
		return []Args{s.told(r, Args{s.permitKeys(), []string{s.rawID(0), leaseEnd, clockNow}})}
	},
	Ours:  ourPermitRenew,
	Check: isAsPromised,
}

// PermitLeft asks what a permit has left.
var PermitLeft = &Operation{
	Name: "left",
	Has:  Release.TellsPermitLease,
	Theirs: func(r Release, s Step) []Args {
		return []Args{s.told(r, Args{s.permitKeys(), []string{s.rawID(0), decimal(noEnd), clockNow}})}
	},
}

// PermitsFree, PermitsAll and PermitsOut ask how many permits are free, are there at all, and
// are out.
var (
	PermitsFree = &Operation{Name: "free", does: permitCountFree, Theirs: theirQuestion, Ours: ourQuestion, Check: isAsPromised}
	PermitsAll  = &Operation{Name: "all", does: permitCountAll, Has: Release.CountsPermits, Theirs: theirQuestion, Ours: ourQuestion, Check: isAsPromised}
	PermitsOut  = &Operation{Name: "out", does: permitCountOut, Has: Release.CountsPermits, Theirs: theirQuestion, Ours: ourQuestion, Check: isAsPromised}
)

func theirQuestion(r Release, s Step) []Args {
	return []Args{s.told(r, Args{s.permitKeys(), []string{clockNow}})}
}

func ourQuestion(s Step, _ bool) Call {
	return s.permits(func(l *luasrc.Permits, c *transport.Call) { l.Count(c, s.Now) })
}

func ourPermitRenew(s Step, _ bool) Call {
	_, ends, _ := s.permitNames()
	return filled(func(c *transport.Call) {
		luasrc.FillPermitRenew(c, s.Now, 1, func(int) (key, ids, lease any) { return ends, s.allIDs(), s.Lease })
	})
}

// PermitsTrySet sets how many permits there are, if that was not done before.
var PermitsTrySet = &Operation{
	Name:   "try-set",
	does:   counterSet,
	Theirs: theirPermits,
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.TrySet(c, s.Permits, 0) })
	},
	Check: isAsPromised,
}

// PermitsSet sets how many permits there are, those that are out included.
var PermitsSet = &Operation{
	Name: "set",
	does: permitSet,
	Has:  Release.CountsPermits,
	Theirs: func(r Release, s Step) []Args {
		n, t, c := s.permitNames()
		return []Args{s.told(r, Args{[]string{n, c, t}, []string{decimal(s.Permits)}})}
	},
	Ours: func(s Step, _ bool) Call {
		return s.permits(func(l *luasrc.Permits, c *transport.Call) { l.Set(c, s.Permits) })
	},
	Check: isAsPromised,
}

// PermitsAdd changes how many permits there are, up or down.
var PermitsAdd = &Operation{
	Name:   "add",
	does:   counterAdd,
	Theirs: theirPermits,
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.Add(c, s.Permits) })
	},
	Check: isAsPromised,
}

// permits is a call of ours about the step's semaphore.
func (s Step) permits(fill func(l *luasrc.Permits, c *transport.Call)) Call {
	count, ends, channel := s.permitNames()
	l := luasrc.Permits{Counter: luasrc.Counter{Key: count, Channel: channel, Publish: "PUBLISH"}, Permits: ends}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

// allIDs are the step's ids as our scripts have them, one behind the other.
func (s Step) allIDs() string { return strings.Join(s.rawIDs(), "") }

// permitNames are the counter of the step's semaphore, the ends of its permits, and its channel.
func (s Step) permitNames() (count, ends, channel string) {
	name := s.Names[0]
	return name, braced(name) + ":timeout", semaphoreChannel(name)
}

func (s Step) permitKeys() []string {
	n, t, c := s.permitNames()
	return []string{n, t, c}
}

// rawID is an id of a permit as the server has it: sixteen bytes.
func (s Step) rawID(i int) string {
	if i >= len(s.IDs) {
		return ""
	}
	return RawID(s.IDs[i])
}

// RawID is an id as the server has it. An id that is no hexadecimal text is none.
func RawID(id string) string {
	raw, err := hex.DecodeString(id)
	if err != nil {
		return ""
	}
	return string(raw)
}

func (s Step) rawIDs() (all []string) {
	for i := range s.IDs {
		all = append(all, s.rawID(i))
	}
	return all
}
