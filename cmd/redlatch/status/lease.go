package status

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// leaseWatch is what was seen of one hold.
type leaseWatch struct {
	first, last inspect.Snapshot
	rose        bool
}

// sees takes a look in. A holder that has entered again, or left once, may have set the
// lease by that: it is watched from then on.
func (w *leaseWatch) sees(now inspect.Snapshot) {
	switch {
	case !now.Held() || now.Inspection.TTL < 0:
		*w = leaseWatch{}
	case w.first.Inspection == nil || !sameHolds(w.first.Inspection, now.Inspection):
		*w = leaseWatch{first: now, last: now}
	default:
		w.rose = w.rose || w.last.RenewedBy(&now)
		w.last = now
	}
}

// sameHolds reports whether the same owners have entered as often.
func sameHolds(a, b *admin.Inspection) bool {
	if len(a.Holders) != len(b.Holders) {
		return false
	}
	for i, h := range a.Holders {
		if h.Text != b.Holders[i].Text || h.CountText != b.Holders[i].CountText {
			return false
		}
	}
	return true
}

// renewed says what is known of whether the lease is renewed, "" when there is none.
func (w *leaseWatch) renewed() string {
	switch {
	case w.first.Inspection == nil:
		return ""
	case w.rose:
		return inspect.RenewedYes
	case w.last.Answered.Sub(w.first.Answered) >= inspect.RenewalDue(w.first.Inspection.TTL):
		return inspect.RenewedNo
	}
	return inspect.RenewedUnknown
}

// leaseText describes the lease for the text output.
func (s *status) leaseText() string {
	left := limits.FromMillis(*s.TTLMillis)
	said := cli.Millis(*s.TTLMillis) + " left"
	switch s.Renewed {
	case inspect.RenewedYes:
		return said + ", renewed"
	case inspect.RenewedNo:
		return said + ", not renewed when due: fixed, or the holder is gone"
	case inspect.RenewedUnknown:
		return fmt.Sprintf("%s, fixed or renewed (--for %s would show)", said,
			(inspect.RenewalDue(left) + inspect.Interval).Truncate(time.Second))
	}
	return said
}
