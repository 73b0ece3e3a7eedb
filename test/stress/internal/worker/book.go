package worker

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const (
	// samplePause is how often every hold is looked at.
	samplePause = 20 * time.Millisecond
	// news is how far a deadline must have moved to be worth a line, and staleness
	// how old the last line may be.
	news      = 100 * time.Millisecond
	staleness = 300 * time.Millisecond
)

// held is a hold as its session knows it.
type held struct {
	id    string
	hold  *rlock.Hold
	lease time.Duration

	// Of the sampler, guarded by the book's mu.
	last, until history.Time // the last sample
	wroteAt     history.Time
	wrote       history.Time
}

// book samples the holds that live.
type book struct {
	log  *history.Writer
	quit chan struct{}
	done chan struct{}

	mu    sync.Mutex // guards what follows, and the samples of holds
	holds map[*held]struct{}
}

func openBook(log *history.Writer) *book {
	b := &book{log: log, quit: make(chan struct{}), done: make(chan struct{}), holds: map[*held]struct{}{}}
	go b.run()
	return b
}

func (b *book) close() {
	close(b.quit)
	<-b.done
}

func (b *book) run() {
	defer close(b.done)
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.sampleAll()
		case <-b.quit:
			return
		}
	}
}

// add begins to sample a hold.
func (b *book) add(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds[h] = struct{}{}
	b.sample(h)
}

// remove ends it: the hold is about to be given up.
func (b *book) remove(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holds, h)
}

func (b *book) sampleAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for h := range b.holds {
		b.sample(h)
	}
}

// sample is called with b.mu held. The order matters: the time comes first, so that
// what is written is never more than the hold says.
func (b *book) sample(h *held) {
	at := history.Now()
	err := h.hold.Err()
	if err != nil {
		b.log.Write(history.Record{Kind: history.Over, Hold: h.id, Until: h.last, Err: class(err)})
		delete(b.holds, h)
		return
	}
	until := at + h.hold.Remaining()
	h.last, h.until = at, max(h.until, until)
	if h.until > h.wrote+news || at > h.wroteAt+staleness {
		b.log.Write(history.Record{T: at, Kind: history.Valid, Hold: h.id, Until: h.until})
		h.wrote, h.wroteAt = h.until, at
	}
}
