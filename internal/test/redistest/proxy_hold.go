package redistest

import (
	"bytes"
	"slices"
)

// maxPattern bounds the text HoldMatching looks for, in bytes.
const maxPattern = 1024

// Held is a connection that HoldMatching stops in one direction, or will.
type Held struct {
	proxy   *Proxy
	dir     Direction
	pattern []byte
	seen    chan struct{}

	released bool // guarded by proxy.mu
}

// HoldMatching waits for the first connection that carries text in the
// direction, and holds it back there from that text on until Release. What
// stands before the text passes, so a command with the text in it does not run,
// and those before it do. Other connections pass, also with that text. Text of
// more than 1024 bytes, or none, ends the test.
func (p *Proxy) HoldMatching(dir Direction, text string) *Held {
	p.tb.Helper()
	if text == "" || len(text) > maxPattern {
		p.tb.Fatalf("redistest: HoldMatching takes 1 to %d bytes, not %d", maxPattern, len(text))
	}
	h := &Held{proxy: p, dir: dir, pattern: []byte(text), seen: make(chan struct{})}
	p.change(func() { p.triggers[dir] = append(p.triggers[dir], h) })
	return h
}

// Seen returns a channel that is closed when the text has come and is held.
func (h *Held) Seen() <-chan struct{} { return h.seen }

// Release delivers what was held and lets the connection pass. If the text has
// not come, it no longer matters. It may be called more than once.
func (h *Held) Release() {
	p := h.proxy
	p.change(func() {
		h.released = true
		p.dropTrigger(h)
	})
}

// dropTrigger is called with p.mu held.
func (p *Proxy) dropTrigger(h *Held) {
	p.triggers[h.dir] = slices.DeleteFunc(p.triggers[h.dir], func(o *Held) bool { return o == h })
}

// match is where a text was found in what was just read.
type match struct {
	held *Held
	at   int
}

// matches finds the texts that data completes and takes them off the proxy's
// list. A text that began in an earlier read is found at 0: that part has
// passed. It is called with the proxy's mu held.
func (q *pipe) matches(data []byte) []match {
	p := q.link.proxy
	window := slices.Concat(q.tail, data)
	known := len(q.tail)
	var found []match
	for _, h := range slices.Clone(p.triggers[q.dir]) {
		// Only matches that end in data: the rest passed before h was set.
		from := max(0, known-len(h.pattern)+1)
		i := bytes.Index(window[from:], h.pattern)
		if i < 0 {
			continue
		}
		found = append(found, match{held: h, at: max(0, from+i-known)})
		p.dropTrigger(h)
		close(h.seen)
	}
	q.tail = clone(window[max(0, len(window)-maxPattern):])
	slices.SortFunc(found, func(a, b match) int { return a.at - b.at })
	return found
}
