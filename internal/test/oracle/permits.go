package oracle

import "encoding/hex"

// Permits is the semaphore whose permits have ids and expire.
var Permits = Kind{
	Name:       "permits",
	Operations: permitOperations,
	Cases:      permitsCases(),
}

var permitOperations = []*Operation{
	PermitAcquire, PermitRelease, PermitReleaseAll, PermitRenew, PermitLeft,
	PermitsFree, PermitsAll, PermitsOut, PermitsTrySet, PermitsSet, PermitsAdd,
}

// noEnd is the score of a permit that never expires.
const noEnd = 922337203685477

// forEver is the lease of a permit that never expires.
const forEver = -1

// PermitAcquire takes as many permits as there are ids, or none.
var PermitAcquire = &Operation{Name: "acquire", Theirs: theirPermitAcquire}

func theirPermitAcquire(r Release, s Step) []Args {
	end := leaseEnd
	if s.Lease == forEver {
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
	Theirs: func(r Release, s Step) []Args {
		n, t, c := s.permitNames()
		return []Args{s.told(r, Args{[]string{n, c, t}, []string{s.rawID(0), "1", clockNow}})}
	},
}

// PermitReleaseAll gives several back.
var PermitReleaseAll = &Operation{
	Name: "release-all",
	Has:  Release.TakesManyPermits,
	Theirs: func(_ Release, s Step) []Args {
		n, t, c := s.permitNames()
		argv := []string{decimal(int64(len(s.IDs))), clockNow, "PUBLISH"}
		return []Args{{[]string{n, c, t}, append(argv, s.rawIDs()...)}}
	},
}

// PermitRenew gives a permit another lease.
var PermitRenew = &Operation{
	Name: "renew",
	Theirs: func(r Release, s Step) []Args {
		return []Args{s.told(r, Args{s.permitKeys(), []string{s.rawID(0), leaseEnd, clockNow}})}
	},
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
	PermitsFree = &Operation{Name: "free", Theirs: theirQuestion}
	PermitsAll  = &Operation{Name: "all", Has: Release.CountsPermits, Theirs: theirQuestion}
	PermitsOut  = &Operation{Name: "out", Has: Release.CountsPermits, Theirs: theirQuestion}
)

func theirQuestion(r Release, s Step) []Args {
	return []Args{s.told(r, Args{s.permitKeys(), []string{clockNow}})}
}

// PermitsTrySet sets how many permits there are, if that was not done before.
var PermitsTrySet = &Operation{Name: "try-set", Theirs: theirPermits}

// PermitsSet sets how many permits there are, those that are out included.
var PermitsSet = &Operation{
	Name: "set",
	Has:  Release.CountsPermits,
	Theirs: func(r Release, s Step) []Args {
		n, t, c := s.permitNames()
		return []Args{s.told(r, Args{[]string{n, c, t}, []string{decimal(s.Permits)}})}
	},
}

// PermitsAdd changes how many permits there are, up or down.
var PermitsAdd = &Operation{Name: "add", Theirs: theirPermits}

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
