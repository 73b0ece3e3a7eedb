package loss

import (
	"runtime"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// signal reports whether the hold has ended, as far as its holder can tell.
type signal func() bool

// A sight may be read after its watch has ended.
type sight struct {
	signal signal
	// notified is when the first check that found the hold ended returned, or zero.
	notified time.Time
	// valid is when the last check that found the hold valid began, or zero.
	valid time.Time
}

func (s *sight) gap() time.Duration {
	if s.notified.IsZero() || s.valid.IsZero() {
		return 0
	}
	return s.notified.Sub(s.valid)
}

// Sampler checks signals in a busy loop, in one goroutine. Its methods are safe for concurrent use.
type Sampler struct {
	done chan struct{}

	mu     sync.Mutex // guards the fields below
	wake   *sync.Cond // signaled when a field changes
	fresh  []*watch
	closed bool
}

type watch struct {
	sights []*sight
	until  time.Time
	over   chan struct{}
}

// NewSampler starts a sampler.
func NewSampler() *Sampler {
	s := &Sampler{done: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// Close stops the sampler and ends its watches.
func (s *Sampler) Close() {
	s.mu.Lock()
	s.closed = true
	s.wake.Signal()
	s.mu.Unlock()
	<-s.done
}

// watch returns a channel that is closed when all holds have ended or until has passed.
func (s *Sampler) watch(sights []*sight, until time.Time) <-chan struct{} {
	w := &watch{sights: sights, until: until, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(w.over)
		return w.over
	}
	s.fresh = append(s.fresh, w)
	s.wake.Signal()
	return w.over
}

func (s *Sampler) run() {
	defer close(s.done)
	type pending struct {
		*watch
		left []*sight
	}
	var all []pending
	for {
		fresh, goOn := s.next(len(all) == 0)
		for _, w := range fresh {
			all = append(all, pending{w, append([]*sight(nil), w.sights...)})
		}
		kept := all[:0]
		for _, p := range all {
			p.left = look(p.left)
			if goOn && len(p.left) > 0 && time.Now().Before(p.until) {
				kept = append(kept, p)
			} else {
				close(p.over)
			}
		}
		all = kept
		if !goOn {
			return
		}
		runtime.Gosched() // the clients also need the processor
	}
}

func (s *Sampler) next(idle bool) (fresh []*watch, goOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for idle && len(s.fresh) == 0 && !s.closed {
		s.wake.Wait()
	}
	fresh, s.fresh = s.fresh, nil
	return fresh, !s.closed
}

func look(sights []*sight) []*sight {
	left := sights[:0]
	for _, s := range sights {
		at := time.Now()
		if s.signal() {
			s.notified = time.Now()
			continue
		}
		s.valid = at
		left = append(left, s)
	}
	return left
}

const rivalEvery = 5 * time.Millisecond

type rival struct {
	conn redis.Conn
	keys []string
	free map[string]time.Time
}

func (r *rival) compete(until time.Time) error {
	tick := time.NewTicker(rivalEvery)
	defer tick.Stop()
	left := r.keys
	for len(left) > 0 && time.Now().Before(until) {
		<-tick.C
		n, err := redis.Int(r.conn.Do("EXISTS", redis.Args{}.AddFlat(left)...))
		if err == nil && n < len(left) {
			left, err = r.which(left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rival) which(keys []string) ([]string, error) {
	for _, key := range keys {
		if err := r.conn.Send("EXISTS", key); err != nil {
			return nil, err
		}
	}
	if err := r.conn.Flush(); err != nil {
		return nil, err
	}
	var left []string
	for _, key := range keys {
		n, err := redis.Int(r.conn.Receive())
		if err != nil {
			return nil, err
		}
		if n == 1 {
			left = append(left, key)
		} else {
			r.free[key] = time.Now()
		}
	}
	return left, nil
}
