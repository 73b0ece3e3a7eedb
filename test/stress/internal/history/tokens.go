package history

import (
	"cmp"
	"slices"
)

// checkTokens finds tokens that have not grown: a call that began after a hold was granted
// must have a higher one, unless the server was made to forget in between.
func (s *Story) checkTokens() (findings []Finding) {
	for _, key := range sortedKeys(s.ByKey) {
		granted := slices.DeleteFunc(slices.Clone(s.ByKey[key]), func(h *Hold) bool { return h.Token == 0 })
		called := slices.Clone(granted)
		slices.SortStableFunc(called, func(a, b *Hold) int { return cmp.Compare(a.Called, b.Called) })
		var last *Hold // the highest of those that were granted before
		i := 0
		for _, h := range called {
			for ; i < len(granted) && granted[i].From < h.Called; i++ {
				if last == nil || s.forgot(key, last.Called, granted[i].From) || granted[i].Token > last.Token {
					last = granted[i]
				}
			}
			if last != nil && h.Token <= last.Token && !s.forgot(key, last.Called, h.From) {
				findings = append(findings, found("tokens", "%s: %s has token %d, and %s had %d before", key, h.ID, h.Token, last.ID, last.Token))
			}
		}
	}
	return findings
}

// forgot reports whether the server may have been made to forget a key between two moments.
func (s *Story) forgot(key string, from, to Time) bool {
	return slices.ContainsFunc(s.Faults, func(f Record) bool {
		return (f.Key == "*" || f.Key == key) && f.T <= to && f.Until >= from
	})
}
