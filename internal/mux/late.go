package mux

import "sync"

// lateRunner runs functions one after the other on a goroutine that exists while
// there are any. Only goroutines that wg counts may hand it one, and a caller that has
// the read token, whose reader wg counts: then wg does not pass zero in between.
type lateRunner struct {
	wg *sync.WaitGroup

	mu    sync.Mutex // guards what follows; not held while a function runs
	funcs []func()
	runs  bool
}

func (r *lateRunner) do(f func()) {
	r.mu.Lock()
	r.funcs = append(r.funcs, f)
	start := !r.runs
	r.runs = true
	r.mu.Unlock()
	if start {
		r.wg.Go(r.run)
	}
}

func (r *lateRunner) run() {
	for {
		r.mu.Lock()
		fs := r.funcs
		r.funcs = nil
		r.runs = len(fs) > 0
		r.mu.Unlock()
		if len(fs) == 0 {
			return
		}
		for _, f := range fs {
			f()
		}
	}
}
