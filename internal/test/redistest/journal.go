package redistest

import (
	"log/slog"
	"strings"
	"sync"
)

// Journal keeps what is logged, for tests that look at it. Safe for concurrent use.
type Journal struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// NewJournal returns an empty journal and a logger that writes to it, at every level.
func NewJournal() (*Journal, *slog.Logger) {
	j := &Journal{}
	return j, slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write is part of io.Writer. It is called with one line at a time.
func (j *Journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

// Lines returns the lines that contain one of the texts, or all lines if there are
// none.
func (j *Journal) Lines(texts ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for _, line := range j.lines {
		if len(texts) == 0 || containsOne(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

func containsOne(line string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}
