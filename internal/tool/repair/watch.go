package repair

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// look is the state read between asked and answered.
type look struct {
	*Forced
	asked, answered time.Time
	lock            *inspect.Snapshot // nil for permits
	// leases is when the readers' leases were read, which is after the lock was read.
	leases time.Time
	unread []string
}

// judged is the verdict on a holder until its hold changes.
type judged struct {
	owner, count string
	left         time.Duration // at the first look; negative means no lease
	last         time.Duration // at the last look
	renewed      string        // "" while unknown
	unread       bool          // its lease could not be read
}

func (u *Unlock) look(ctx context.Context) (*look, error) {
	if u.semaphore {
		return u.lookPermits(ctx)
	}
	s, err := inspect.Read(ctx, u.Client, u.Name, inspect.Places)
	if errors.Is(err, redlatch.ErrWrongType) && u.isSemaphore(ctx) {
		u.semaphore = true
		return u.lookPermits(ctx)
	}
	if err != nil {
		return nil, err
	}
	l := &look{Forced: forcedOf(s), asked: s.Asked, answered: s.Answered, lock: s}
	l.wanted = u.owners()
	slices.SortStableFunc(l.Holders, func(a, b inspect.Holder) int {
		return order(isOneOf(b.Owner, l.wanted)) - order(isOneOf(a.Owner, l.wanted))
	})
	if slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Mode == "read" }) {
		err := u.use(ctx, func(c redis.Conn) error {
			l.leases = time.Now()
			l.unread = inspect.ReadLeases(c, u.Name, l.Holders)
			l.answered = time.Now()
			return nil
		})
		if err != nil {
			return nil, err // otherwise a live reader would look dead
		}
	}
	return l, nil
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lease is negative if it is unknown or does not exist.
func (f *Forced) lease(h *inspect.Holder) time.Duration {
	switch {
	case h.LeftMillis != nil:
		return limits.FromMillis(*h.LeftMillis)
	case f.TTLMillis == nil, h.Mode == "read", h.Mode == "permit":
		return redlatch.NoTTL
	}
	return limits.FromMillis(*f.TTLMillis)
}

func (u *Unlock) judge(first *look) {
	for _, h := range first.of(u.owners()) {
		left := first.lease(h)
		first.judged = append(first.judged, &judged{
			owner: h.Owner, count: string(h.Count), left: left, last: left, unread: slices.Contains(first.unread, h.Owner),
		})
	}
}

// examine looks at the lock until each holder is judged. It returns the last look.
func (u *Unlock) examine(ctx context.Context, first *look) (*look, error) {
	u.judge(first)
	limit := time.Duration(-1)
	for _, j := range first.judged {
		if j.left >= 0 {
			limit = max(limit, LookLimit(u.For, j.left))
		}
	}
	if u.Looks != nil && limit >= 0 {
		u.Looks(limit)
	}
	last := first
	for {
		pause := last.pause(first, u.For)
		if pause == 0 || u.decided(last.judged) {
			last.conclude()
			return last, nil
		}
		if err := inspect.Pause(ctx, pause); err != nil {
			return nil, err
		}
		next, err := u.look(ctx)
		if err != nil {
			return nil, err
		}
		next.compare(last)
		last = next
	}
}

// pause returns how long to wait before the next look, or 0 if all holders have been judged. It does not count the
// time since the last look began, because it would miss a renewal in that time.
func (l *look) pause(first *look, limit time.Duration) time.Duration {
	pause := time.Duration(0)
	for _, j := range l.judged {
		if !j.known(l.asked.Sub(first.answered), limit) {
			pause = min(cmp.Or(pause, inspect.Interval), inspect.RenewalDue(max(j.left, 0))/10)
		}
	}
	return pause
}

func (u *Unlock) decided(all []*judged) bool {
	return len(u.owners()) > 0 && slices.ContainsFunc(all, func(j *judged) bool { return j.renewed == inspect.RenewedYes })
}

func (j *judged) known(looked, limit time.Duration) bool {
	switch {
	case j.renewed != "", j.unread:
		return true
	case j.left < 0:
		return looked >= min(limit, inspect.RenewalSlack)
	case j.left == 0:
		return true
	}
	due := inspect.RenewalDue(j.left)
	if looked >= due {
		j.renewed = inspect.RenewedNo
		return true
	}
	return looked >= limit && limit < due
}

func (l *look) compare(before *look) {
	for _, j := range before.judged {
		i := slices.IndexFunc(l.Holders, func(h inspect.Holder) bool { return h.Owner == j.owner })
		if i < 0 || string(l.Holders[i].Count) != j.count {
			continue
		}
		left, asked := l.lease(&l.Holders[i]), l.asked
		if l.Holders[i].Mode == "read" {
			asked = l.leases
		}
		if inspect.Renewed(j.last, left, asked.Sub(before.answered)) {
			j.renewed = inspect.RenewedYes
		}
		j.last, j.unread = left, j.unread || slices.Contains(l.unread, j.owner)
		l.judged = append(l.judged, j)
	}
}

func (l *look) conclude() {
	l.Renewed = ""
	for _, j := range l.judged {
		if j.left == 0 && j.renewed == "" {
			j.renewed = inspect.RenewedNo
		}
		if j.renewed == "" {
			j.renewed = inspect.RenewedUnknown
		}
		// Unknown takes precedence over no, and no over yes.
		switch {
		case j.renewed == inspect.RenewedUnknown, l.Renewed == "":
			l.Renewed = j.renewed
		case j.renewed == inspect.RenewedNo && l.Renewed == inspect.RenewedYes:
			l.Renewed = inspect.RenewedNo
		}
		for i := range l.Holders {
			if h := &l.Holders[i]; h.Owner == j.owner && h.LeftMillis != nil {
				h.Renewed = j.renewed
			}
		}
	}
	if l.Renewed == "" {
		l.Renewed = inspect.RenewedUnknown
	}
}

func (u *Unlock) isSemaphore(ctx context.Context) (is bool) {
	err := u.use(ctx, func(c redis.Conn) error {
		found, err := inspect.NumberAt(ctx, c, u.Name)
		is = err == nil && found != nil
		return err
	})
	return is && err == nil
}

func (u *Unlock) lookPermits(ctx context.Context) (*look, error) {
	l := &look{Forced: &Forced{
		Named: inspect.NameOf(u.Name), Kind: string(inspect.Semaphore), Holders: []inspect.Holder{}, Renewed: inspect.RenewedUnknown,
		wanted: u.owners(),
	}}
	var ids, raw []string
	for _, id := range l.wanted {
		if decoded, err := hex.DecodeString(id); err == nil && id != "" { // permits do not have other IDs
			ids, raw = append(ids, id), append(raw, string(decoded))
		}
	}
	var ends map[string]int64
	var now int64
	err := u.use(ctx, func(c redis.Conn) (err error) {
		l.asked = time.Now()
		ends, now, err = inspect.PermitEnds(c, u.Name, raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.answered = time.Now()
	for i, id := range ids {
		end, taken := ends[raw[i]]
		if !taken {
			continue
		}
		h := inspect.Holder{Owner: id, Count: "1", Client: inspect.ClientOf(id), Mode: "permit"}
		if end < protocol.PermitForever {
			left := max(end-now, 0)
			h.LeftMillis = &left
		}
		l.Holders = append(l.Holders, h)
	}
	return l, nil
}
