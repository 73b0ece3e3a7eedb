package leader

import (
	"context"
	"net/http"
	"sync/atomic"
)

// Status shows whether a candidate leads. The zero Status is ready: give it to one [Run], in
// its Config. All methods are safe for concurrent use, and send nothing.
type Status struct {
	ended atomic.Pointer[func() error] // Err of the context of the last leadership
}

// lead shows a leadership for as long as its context lives.
func (s *Status) lead(leading context.Context) {
	ended := leading.Err
	s.ended.Store(&ended)
}

// IsLeader reports whether the candidate leads now: whether the context that Lead got is live.
// It asks the clocks, so that it is right at the first instruction after the machine was
// suspended. By the time that a caller acts on it, it may be over: what must not happen twice
// heeds Lead's context.
func (s *Status) IsLeader() bool {
	ended := s.ended.Load()
	return ended != nil && (*ended)() == nil
}

// ServeHTTP answers a readiness probe: 200 and "leader" when the candidate leads, 503 and
// "standby" when it does not, so that a load balancer sends requests to the leader alone. It is
// no liveness probe: a candidate that waits is well. It answers every method and path.
func (s *Status) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !s.IsLeader() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("standby\n"))
		return
	}
	_, _ = w.Write([]byte("leader\n"))
}
