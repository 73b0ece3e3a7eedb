//go:build linux

package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Hold is the history of one hold.
type Hold struct {
	ID, P, Key, Owner, Outer string
	// Called is the time at which the call that acquired the hold began. The hold was valid at least from From to To.
	Called, From, To Time
	Lease, Margin    Time
	Renewed          bool
	Token            int64
	Read             bool
	Permits, Most    int64
	Cause            string
	// Early is how long before its deadline the hold was found to be lost, or 0.
	Early Time

	// sent is the time at which the attempt that succeeded was sent. It is derived from the first deadline, because the
	// lease starts at that time.
	sent                Time
	lastValid, deadline Time
	over, given         Time
}

// Story is a history that was assembled from the records of all processes.
type Story struct {
	Holds                         map[string]*Hold
	ByKey, BySemaphore            map[string][]*Hold
	Calls                         map[string]*Made
	Freed                         map[string]*Made
	Marks, Audits, Stocks, Faults []Record
	Stops                         map[string][]Span
	// Stalls are the Stops that were detected by the stopped process itself.
	Stalls []Span
	Kills  map[string]Time
	Ended  Time
}

// Made is a call.
type Made struct {
	Record
	Returned Time
	Err      string
}

// Span is an interval of time.
type Span struct {
	From, To Time
}

func (s Span) length() Time { return max(0, s.To-s.From) }

func (s Span) and(t Span) Span { return Span{max(s.From, t.From), min(s.To, t.To)} }

func inOrder(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.T, b.T) })
}

// NewStory builds a Story from the records of all processes.
func NewStory(records []Record) *Story {
	s := &Story{
		Holds: map[string]*Hold{}, ByKey: map[string][]*Hold{}, BySemaphore: map[string][]*Hold{},
		Calls: map[string]*Made{}, Freed: map[string]*Made{},
		Stops: map[string][]Span{}, Kills: map[string]Time{},
	}
	inOrder(records)
	for _, r := range records {
		s.Ended = max(s.Ended, r.T)
		s.take(r)
	}
	for _, h := range s.Holds {
		s.end(h)
	}
	for _, byName := range []map[string][]*Hold{s.ByKey, s.BySemaphore} {
		for _, holds := range byName {
			slices.SortStableFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.From, b.From) })
		}
	}
	return s
}

func (s *Story) take(r Record) {
	switch r.Kind {
	case Call:
		s.Calls[r.ID] = &Made{Record: r}
	case Return:
		if c := s.Calls[r.ID]; c != nil {
			c.Returned, c.Err = r.T, r.Err
			if frees(c.Op) && c.Err == "" {
				s.Freed[c.Hold] = c
			}
		}
	case Grant:
		s.grant(r)
	case Valid, Over, Give, Kept:
		if h := s.Holds[r.Hold]; h != nil {
			h.sample(r)
		}
	case Mark:
		s.Marks = append(s.Marks, r)
	case Audit, Absent:
		s.Audits = append(s.Audits, r)
	case Stock:
		s.Stocks = append(s.Stocks, r)
	default:
		s.takeOther(r)
	}
}

func (s *Story) takeOther(r Record) {
	switch r.Kind {
	case Fault:
		s.Faults = append(s.Faults, r)
	case Stop:
		s.Stops[r.P] = append(s.Stops[r.P], Span{r.T, r.Until})
		if r.Op == Stalled {
			s.Stalls = append(s.Stalls, Span{r.T, r.Until})
		}
	case Kill:
		s.Kills[r.P] = r.T
	}
}

func (s *Story) grant(r Record) {
	h := &Hold{
		ID: r.Hold, P: r.P, Key: r.Key, Owner: r.Owner, Outer: r.Outer,
		Called: r.T, From: r.T, Lease: r.Lease, Margin: r.Margin, Renewed: r.Renewed, Token: r.Token, Read: r.Read,
		Permits: r.Permits, Most: r.Most,
		lastValid: r.T, deadline: r.T,
	}
	if c := s.Calls[r.ID]; c != nil {
		h.Called = c.T
	}
	h.sent = h.Called
	s.Holds[h.ID] = h
	byName := s.ByKey
	if h.Permits > 0 {
		byName = s.BySemaphore
	}
	byName[h.Key] = append(byName[h.Key], h)
}

func frees(op string) bool { return op == "unlock" || op == "release" }

func (h *Hold) sample(r Record) {
	switch r.Kind {
	case Valid:
		if h.deadline == h.From {
			h.sent = min(h.From, max(h.Called, r.Until-(h.Lease-h.Margin)))
		}
		h.lastValid, h.deadline = max(h.lastValid, r.T), max(h.deadline, r.Until)
	case Over:
		h.over, h.Cause = r.T, r.Err
		h.lastValid = max(h.lastValid, r.Until)
	case Give:
		h.given = r.T
	case Kept:
		h.given = 0
	}
}

// end sets h.To to a time until which the process certainly considered the hold valid, so that an overlap is real even
// if the machine is busy. Each sample reads the clock before it calls Err and Remaining, so both results are lower
// bounds. By default, the hold is valid until its last known deadline, because a process that was stopped cannot have
// noticed the end of its hold. If the process found the hold lost before the deadline, it is only valid until the last
// valid sample. A hold never outlasts the start of its unlock or the kill of its process.
func (s *Story) end(h *Hold) {
	h.To = h.deadline
	if h.over > 0 && h.over < h.deadline {
		h.To = h.lastValid
		if h.given == 0 || h.over < h.given {
			h.Early = h.deadline - h.over
		}
	}
	if h.given > 0 {
		h.To = min(h.To, h.given)
	}
	killed, dead := s.Kills[h.P]
	if dead {
		h.To = min(h.To, killed)
	}
	h.To = min(h.To, s.Ended)
}

// Valid returns the interval in which the hold was certainly valid.
func (h *Hold) Valid() Span { return Span{h.From, h.To} }

// Limits are the tolerances of the checks.
type Limits struct {
	// Slack is how much longer than its time limit a call may take.
	Slack time.Duration
	// Idle is how long a lock that has waiters may be free while no fault affects it.
	Idle      time.Duration
	Aftermath Aftermath
}

// Judge runs all checks. Most of them excuse violations that follow from a fault in which the server lost data.
func (s *Story) Judge(l Limits) []Finding {
	var all []Finding
	for _, check := range []func() []Finding{
		s.checkOverlaps, s.checkMarks, s.checkTokens, s.checkAudits, s.checkEarly, s.checkReentries, s.checkPermits, s.checkStocks,
	} {
		all = append(all, check()...)
	}
	all = append(all, s.checkCalls(l.Slack)...)
	if i := s.LongestIdle(l.Aftermath); i.Calm > l.Idle {
		all = append(all, Finding{"idle", fmt.Sprintf("%s with waiters was free for %v (%v in all, from %v on)",
			i.Key, i.Calm.Round(time.Millisecond), i.Span.length().Round(time.Millisecond), i.Span.From)})
	}
	return all
}
