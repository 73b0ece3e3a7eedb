package loss

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// stage takes the place of the test that servers and proxies of redistest belong to.
type stage struct {
	testing.TB // nil: redistest calls nothing but what is below

	mu      sync.Mutex // guards what follows
	endings []func()
	err     error
}

// perform runs f, which ends early when something fails, and then what was to be
// cleaned up. It returns what failed.
func perform(f func(tb testing.TB)) error {
	s := &stage{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.cleanUp()
		f(s)
	}()
	<-done
	return s.err
}

func (s *stage) cleanUp() {
	for {
		s.mu.Lock()
		endings := s.endings
		s.endings = nil
		s.mu.Unlock()
		if len(endings) == 0 {
			return
		}
		for _, end := range slices.Backward(endings) {
			end()
		}
	}
}

// Helper is part of testing.TB.
func (s *stage) Helper() {}

// Cleanup is part of testing.TB.
func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endings = append(s.endings, f)
}

// Failed is part of testing.TB.
func (s *stage) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// Logf is part of testing.TB. The server's last output goes with the error.
func (s *stage) Logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = fmt.Errorf("%w\n%s", s.err, fmt.Sprintf(format, args...))
}

// Fatalf is part of testing.TB. It ends the goroutine.
func (s *stage) Fatalf(format string, args ...any) {
	s.mu.Lock()
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.mu.Unlock()
	runtime.Goexit()
}
