package promredlatch

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// together is how many measurements are counted one after the other: code that runs once in a while
// is not in the processor's cache, and costs several times as much.
const together = 64

// measurement is a duration that is yet to be counted, in seconds.
type measurement struct {
	to      prometheus.Observer
	seconds float64
}

// pending has the measurements that are yet to be counted. Those that are taken out are counted by
// the goroutine that takes them, without mu.
type pending struct {
	mu    sync.Mutex
	all   []measurement // fewer than together
	spare []measurement // for those that come while all are counted; nil: none
}

// add counts a measurement with others, at the latest when the metrics are collected.
func (p *pending) add(m measurement) {
	p.mu.Lock()
	var full []measurement
	if p.all = append(p.all, m); len(p.all) >= together {
		full = p.take()
	}
	p.mu.Unlock()
	p.count(full)
}

// flush counts all that are left.
func (p *pending) flush() {
	p.mu.Lock()
	rest := p.take()
	p.mu.Unlock()
	p.count(rest)
}

// take empties it, mu held.
func (p *pending) take() []measurement {
	if len(p.all) == 0 {
		return nil
	}
	taken := p.all
	if p.all, p.spare = p.spare, nil; p.all == nil {
		p.all = make([]measurement, 0, together)
	}
	return taken
}

func (p *pending) count(all []measurement) {
	if len(all) == 0 {
		return
	}
	for _, m := range all {
		m.to.Observe(m.seconds)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare = all[:0]
}
