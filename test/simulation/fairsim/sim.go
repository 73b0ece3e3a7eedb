package fairsim

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/test/fairmodel"
)

// began is when every simulation begins, in milliseconds since 1970.
const began = 1_800_000_000_000

// Sim is one simulation.
type Sim struct {
	clock
	cfg       Config
	rnd       *rand.Rand
	losses    *rand.Rand // of replies, on connections that stand
	server    *server
	judge     *judge
	processes []*process // that live
}

// Run simulates a fleet. The same Config gives the same Result.
func Run(cfg Config) Result {
	s := &Sim{
		clock: clock{now: began},
		cfg:   cfg,
		rnd:   rand.New(rand.NewPCG(cfg.Seed, 0)), //nolint:gosec // a simulation must be repeatable

		losses: rand.New(rand.NewPCG(cfg.Seed, 1)), //nolint:gosec // the same
	}
	s.server = &server{sim: s, lock: fairmodel.New(), listeners: map[string]*listener{}}
	s.judge = &judge{sim: s, places: map[string]*place{}, last: began}
	for range cfg.Fleet.Redlatch {
		s.launch(true)
	}
	for range cfg.Fleet.Redisson {
		s.launch(false)
	}
	s.trouble()
	s.run(began + cfg.Time.Milliseconds())
	s.judge.account()
	s.judge.Time = cfg.Time
	return s.judge.Result
}

// launch starts a process.
func (s *Sim) launch(redlatch bool) {
	p := &process{sim: s, redlatch: redlatch, id: s.id(redlatch), connected: true}
	p.skew = s.between(-30, 30)
	p.ahead = p.skew
	if skew := s.cfg.Load.Skew.Milliseconds(); redlatch && skew > 0 {
		p.ahead = s.between(-skew, skew)
	}
	s.processes = append(s.processes, p)
	for range Workers {
		if redlatch {
			p.goroutine()
		} else {
			p.start()
		}
	}
}

// id is a UUID that shows the kind of client.
func (s *Sim) id(redlatch bool) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], s.rnd.Uint64())
	binary.BigEndian.PutUint64(id[8:], s.rnd.Uint64())
	version := byte(4)
	if redlatch {
		version = 7
		binary.BigEndian.PutUint64(id[:8], uint64(s.now)<<16|s.rnd.Uint64()&0xffff)
	}
	id[6] = id[6]&0x0f | version<<4
	id[8] = id[8]&0x3f | 0x80
	return id
}

// between is a number from a to b.
func (s *Sim) between(a, b int64) int64 { return a + s.rnd.Int64N(b-a+1) }

// latency is how long a command, a reply or a message travels.
func (s *Sim) latency() int64 {
	switch n := s.rnd.IntN(1000); {
	case n == 0:
		return s.between(200, 1000)
	case n < 10:
		return s.between(10, 200)
	}
	return s.between(0, 2)
}

func (s *Sim) longest() int64 { return s.cfg.Load.Hold.Milliseconds() }

func (s *Sim) holdTime() int64 { return s.between(1, s.longest()) }

// think is how long a worker does without the lock.
func (s *Sim) think() int64 {
	holds := s.cfg.Load.Think
	if holds == 0 {
		holds = 1
	}
	return int64(s.rnd.ExpFloat64() * holds * float64(s.longest()))
}

// waitTime is how long a caller waits that does not wait for ever.
func (s *Sim) waitTime() int64 {
	return s.between(5_000, max(fairWait, s.cfg.Load.Wait.Milliseconds()))
}

// kept reports whether a process of Redlatch's keeps the queue, and has had time to find
// out which waiters are alive: two heartbeats, and a count with each.
func (s *Sim) kept() bool {
	for _, p := range s.processes {
		if p.heartbeat != nil && s.now >= p.blindUntil && s.now > max(p.heartbeat.began, p.blindUntil)+2*period.Milliseconds()+1000 {
			return true
		}
	}
	return false
}

// trouble plans all that goes wrong.
func (s *Sim) trouble() {
	s.every(everyKill, func(p *process) {
		p.kill()
		s.processes = slices.DeleteFunc(s.processes, func(o *process) bool { return o == p })
		s.after(s.between(1000, 30_000), func() { s.launch(p.redlatch) })
	})
	s.every(everyStall, func(p *process) { p.stall(s.between(100, 10_000)) })
	s.every(everyLoss, func(p *process) { p.disconnect(s.outage(p)) })
	s.every(everyBlind, func(p *process) { p.hideListeners(s.between(1000, 120_000)) })
	s.every(everyInterrupt, func(p *process) {
		for _, t := range p.threads {
			if t.interrupt() {
				return
			}
		}
	})
	s.every(everyRestart, func(*process) { s.restart(true) })
}

// restart restarts the server, with what it has stored, and every other time once
// more when most have found it again.
func (s *Sim) restart(again bool) {
	down := s.between(100, 5000)
	for _, p := range s.processes {
		p.disconnect(down + s.outage(p))
	}
	if again && s.rnd.IntN(2) == 0 {
		s.after(down+s.between(1000, 7000), func() { s.restart(false) })
	}
}

// outage is how long a process needs to have connections again.
func (s *Sim) outage(p *process) int64 {
	if p.redlatch {
		return s.between(10, 2000)
	}
	return s.between(100, 10_000)
}

// every makes trouble for a random process, again and again.
func (s *Sim) every(mean time.Duration, meet func(*process)) {
	s.after(int64(s.rnd.ExpFloat64()*float64(mean.Milliseconds())), func() {
		if n := len(s.processes); n > 0 {
			meet(s.processes[s.rnd.IntN(n)])
		}
		s.every(mean, meet)
	})
}
