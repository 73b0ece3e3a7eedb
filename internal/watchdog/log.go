package watchdog

import "sync"

// lines are for the log. They are written beside the loop: a logger may be slow, and neither a
// renewal nor the holder of a lease that is over waits for it.
type lines struct {
	mu      sync.Mutex // not held while one is written
	waiting []line
	writing bool // there is a goroutine that writes them
}

type line struct {
	text string
	args []any
}

// log has a warning written. Only the loop's goroutine may call it.
func (w *Loop) log(text string, args ...any) {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.lines.waiting = append(w.lines.waiting, line{text, args})
	if !w.lines.writing {
		w.lines.writing = true
		w.done.Go(w.writeLines)
	}
}

// isLogging reports whether there are lines that are not written yet.
func (w *Loop) isLogging() bool {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	return w.lines.writing
}

// writeLines writes the lines that wait, in order.
func (w *Loop) writeLines() {
	for {
		w.lines.mu.Lock()
		all := w.lines.waiting
		w.lines.waiting, w.lines.writing = nil, len(all) > 0
		w.lines.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, l := range all {
			w.cfg.Logger.Warn(l.text, l.args...)
		}
	}
}
