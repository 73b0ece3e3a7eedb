package history

import (
	"fmt"
	"time"
)

// Limits are what a history is judged by.
type Limits struct {
	// Slack is what a busy machine may add to the bound of a call.
	Slack time.Duration
	// Idle is how long a lock may lie free in calm times with waiters.
	Idle time.Duration
	// Aftermath is how far the effects of a fault reach.
	Aftermath Aftermath
}

// Judge runs every check.
func (s *Story) Judge(l Limits) []Finding {
	var all []Finding
	for _, check := range []func() []Finding{
		s.checkOverlaps, s.checkMarks, s.checkTokens, s.checkAudits, s.checkEarly, s.checkReentries, s.checkMutex, s.checkPermits, s.checkStocks,
	} {
		all = append(all, check()...)
	}
	all = append(all, s.checkCalls(l.Slack)...)
	if i := s.LongestIdle(l.Aftermath); i.Calm > l.Idle {
		all = append(all, Finding{"idle", fmt.Sprintf("%s lay free for %v (%v in all, from %v on) with waiters",
			i.Key, i.Calm.Round(time.Millisecond), i.Span.length().Round(time.Millisecond), i.Span.From)})
	}
	return all
}
