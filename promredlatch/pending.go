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

// pending has the measurements that are yet to be counted. They are counted with mu held: so a
// collection, which flushes, has all that was measured before it.
type pending struct {
	mu  sync.Mutex
	all []measurement // fewer than together
}

// add counts a measurement with others, at the latest when the metrics are collected.
func (p *pending) add(m measurement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all = append(p.all, m); len(p.all) >= together {
		p.count()
	}
}

// flush counts what is left.
func (p *pending) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count()
}

// count empties it, mu held.
func (p *pending) count() {
	all := p.all
	p.all = all[:0]
	for _, m := range all {
		m.to.Observe(m.seconds)
	}
}
