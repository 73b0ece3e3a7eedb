package board

import (
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// renewal is what was seen of the lease of one hold, for as long as it is watched.
type renewal struct {
	since inspect.Snapshot // the first look at the hold, or the last that found it renewed
	last  inspect.Snapshot
	rose  bool
}

// sees takes a look in. A holder that has entered again, or left once, may have set the lease
// by that: it is watched from then on.
func (r *renewal) sees(now inspect.Snapshot) {
	switch {
	case !now.Held() || now.Inspection.TTL < 0:
		*r = renewal{}
	case r.since.Inspection == nil || !sameHolds(&r.since, &now):
		*r = renewal{since: now, last: now}
	case r.last.RenewedBy(&now):
		*r = renewal{since: now, last: now, rose: true}
	default:
		r.last = now
	}
}

// sameHolds reports whether the same owners have entered as often.
func sameHolds(a, b *inspect.Snapshot) bool {
	if !a.SameHolders(b) {
		return false
	}
	for i, h := range a.Inspection.Holders {
		if h.CountText != b.Inspection.Holders[i].CountText {
			return false
		}
	}
	return true
}

// known says what is known of whether the lease is renewed, "" when there is none. A lease that
// was renewed, but not any more when that was due, is not.
func (r *renewal) known() string {
	switch {
	case r.since.Inspection == nil:
		return ""
	case r.last.Answered.Sub(r.since.Answered) >= inspect.RenewalDue(r.since.Inspection.TTL):
		return inspect.RenewedNo
	case r.rose:
		return inspect.RenewedYes
	}
	return inspect.RenewedUnknown
}
