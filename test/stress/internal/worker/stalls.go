package worker

import (
	"time"

	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const (
	// stallTick is how often it is looked whether the process runs, stallLeast how late a look
	// must be to be written down.
	stallTick  = 50 * time.Millisecond
	stallLeast = 500 * time.Millisecond
)

// stallWatch writes down when no goroutine of the process ran: the machine was busy, or stood
// still itself. It touches nothing of what is tested, so that this cannot delay it.
type stallWatch struct {
	log  *history.Writer
	quit chan struct{}
	done chan struct{}
}

func openStallWatch(log *history.Writer) *stallWatch {
	s := &stallWatch{log: log, quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *stallWatch) close() {
	close(s.quit)
	<-s.done
}

func (s *stallWatch) run() {
	defer close(s.done)
	tick := time.NewTimer(stallTick)
	defer tick.Stop()
	for {
		before := history.Now()
		select {
		case <-tick.C:
		case <-s.quit:
			return
		}
		if now := history.Now(); now-before > stallTick+stallLeast {
			s.log.Write(history.Record{T: before + stallTick, Kind: history.Stop, Op: history.Stalled, Until: now})
		}
		tick.Reset(stallTick)
	}
}
