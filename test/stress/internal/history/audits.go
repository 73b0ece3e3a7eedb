package history

import "time"

// grain is how coarse the server's clock and its milliseconds are, and what the
// sampling of a busy process may be off by.
const grain = 20 * time.Millisecond

// checkAudits compares what the server had with what its clients believed.
func (s *Story) checkAudits() (findings []Finding) {
	for _, a := range s.Audits {
		h := s.Holds[a.Hold]
		if h == nil || s.forgotten(h, a.T) {
			continue
		}
		switch {
		case a.Kind == Absent && a.Count > 0:
			findings = append(findings, found("count", "%s: the server had %s %d times after its last unlock had succeeded",
				h.Key, h.Owner, a.Count))
		case a.Kind == Absent:
		case a.Count == 0:
			if h.To > a.T {
				findings = append(findings, found("gone", "%s: the server had %s no more, %v before %s ended",
					h.Key, h.Owner, h.To-a.T, h.ID))
			}
		case a.Count < a.Depth, a.Exact && a.Count != a.Depth:
			findings = append(findings, found("count", "%s: the server had %s %d times, which was inside %d times",
				h.Key, h.Owner, a.Count, a.Depth))
		case a.TTL >= 0 && a.Until+h.Margin > a.T+a.TTL+grain:
			findings = append(findings, found("margin", "%s: the key of %s could expire %v after the end of %s, its margin is %v",
				h.Key, h.Owner, (a.T+a.TTL-a.Until).Round(time.Millisecond), h.ID, h.Margin))
		}
	}
	return findings
}
