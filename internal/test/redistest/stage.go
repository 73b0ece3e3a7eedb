package redistest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

type stage struct {
	testing.TB

	mu      sync.Mutex // guards endings and err
	endings []func()
	err     error
}

// Perform runs f and its cleanups outside a test, and returns an error if f failed.
func Perform(f func(tb testing.TB)) error {
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

func (s *stage) Helper() {}

func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endings = append(s.endings, f)
}

func (s *stage) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// Logf adds the text, which is the server's last output, to the error.
func (s *stage) Logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = fmt.Errorf("%w\n%s", s.err, fmt.Sprintf(format, args...))
}

func (s *stage) Fatalf(format string, args ...any) {
	s.mu.Lock()
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.mu.Unlock()
	runtime.Goexit()
}
