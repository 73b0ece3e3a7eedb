package cli

import (
	"io"
	"os"
	"sync"
)

// Stdout is standard output for commands, which may ignore write errors.
type Stdout struct {
	file   *os.File
	failed func(error)

	mu  sync.Mutex // guards err
	err error
}

// NewStdout returns a writer to file that calls failed on the first error. Later writes return the
// same error.
func NewStdout(file *os.File, failed func(error)) *Stdout { return &Stdout{file: file, failed: failed} }

func (s *Stdout) Write(p []byte) (int, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	n, err := s.file.Write(p)
	if err != nil {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		s.failed(err)
	}
	return n, err
}

// Err returns the first write error, or nil.
func (s *Stdout) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fileOf returns the file that w writes to, or nil.
func fileOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *Stdout:
		return w.file
	}
	return nil
}
