package fairsim

import (
	"time"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/fairmodel"
)

// heartbeat is what a process of Redlatch's does for the queue while it has waiters
// there: the product's decisions, driven as its engine drives them.
type heartbeat struct {
	p         *process
	detector  *liveness.Detector
	began     int64
	calmSince int64 // since when nothing has hindered it
	begun     bool  // there was a round
	busy      bool  // a round is under way
	soon      bool  // another one is due after that
	next      *timer
}

// beginHeartbeat begins it. The first heartbeat comes after one period.
func (p *process) beginHeartbeat() {
	k := &heartbeat{p: p, detector: liveness.New(liveness.Config{Grace: grace, Period: period})}
	k.began = p.sim.now
	k.calmSince = p.sim.now + period.Milliseconds()
	p.heartbeat = k
	k.next = p.timer(period.Milliseconds(), k.beat)
}

// idle lets it begin sooner, for a lock that has been free for a second.
func (k *heartbeat) idle() {
	if !k.begun {
		k.beat()
	}
}

// endHeartbeat ends it: no waiter of this process is queued.
func (p *process) endHeartbeat() {
	p.heartbeat.next.stop()
	p.heartbeat = nil
}

// restless notes that something hinders the process.
func (p *process) restless() {
	if p.heartbeat != nil {
		p.heartbeat.calmSince = max(p.heartbeat.calmSince, p.sim.now)
	}
}

// calm reports whether nothing hinders it now.
func (p *process) calm() bool {
	return p.connected && p.sim.now >= p.stalledUntil && p.sim.now >= p.blindUntil
}

// reconnected begins the clocks of absence anew, and looks at once.
func (p *process) reconnected() {
	if k := p.heartbeat; k != nil {
		k.detector.Gap()
		k.beat()
	}
}

// local is the process's own time, which no server corrects.
func (p *process) local() time.Time { return time.UnixMilli(p.sim.now + p.ahead) }

func (k *heartbeat) over() bool { return k.p.heartbeat != k }

// beat is a heartbeat, and what follows from it.
func (k *heartbeat) beat() {
	if k.busy {
		k.soon = true
		return
	}
	k.begun, k.busy, k.soon = true, true, false
	k.next.stop()
	p := k.p
	b := fairmodel.Beat{
		Now: p.wall(), Keep: keep.Milliseconds(), Fair: fairWait,
		Window: k.detector.Window(), Others: k.detector.Others(),
	}
	for _, s := range p.group {
		b.Ours = append(b.Ours, fairmodel.Waiter{Owner: s.owner, Wait: s.wait})
	}
	v := p.sim.server
	var answer reply.Beat
	p.call(func() {
		v.run(func(m *fairmodel.Lock) { answer = m.Heartbeat(b) })
		p.sim.judge.checkDeadlines()
	}, func(ok bool) {
		switch {
		case k.over():
		case !ok:
			k.finish()
		default:
			k.look(answer)
		}
	})
}

// look handles the answer: lost waiters are queued anew, and one that may take the lock
// does.
func (k *heartbeat) look(answer reply.Beat) {
	p := k.p
	proof := ""
	for _, s := range p.group {
		if s.listening && p.connected {
			proof = s.owner
			break
		}
	}
	k.detector.Look(p.local(), answer, p.isOurs, proof)
	for _, owner := range answer.Missing {
		p.ask(nil, owner)
	}
	if answer.Left == -2 && len(answer.Front) > 0 {
		p.ask(nil, answer.Front[0].Owner)
	}
	asked := k.detector.Ask()
	if len(asked) == 0 {
		k.act()
		return
	}
	var counts []int64
	p.call(func() { counts = k.count(asked) }, func(ok bool) {
		switch {
		case k.over():
			return
		case !ok:
			counts = nil
		}
		k.detector.Counted(p.local(), counts)
		k.act()
	})
}

func (p *process) isOurs(owner string) bool {
	for _, s := range p.group {
		if s.owner == owner {
			return true
		}
	}
	return false
}

// count counts listeners. Where it does not work, either it is known not to, or all
// counts are 0, as a proxy may answer.
func (k *heartbeat) count(asked []string) []int64 {
	p := k.p
	if p.sim.now < p.blindUntil {
		if p.blindUntil%2 == 0 {
			return nil
		}
		return make([]int64, len(asked))
	}
	counts := make([]int64, len(asked))
	for i, owner := range asked {
		if p.sim.server.listeners[owner] == nil {
			continue
		}
		counts[i] = 1
	}
	return counts
}

// act does what the detector says, and plans the next heartbeat.
func (k *heartbeat) act() {
	p, v := k.p, k.p.sim.server
	e := fairmodel.Eviction{Now: p.wall(), Keep: keep.Milliseconds()}
	for _, d := range k.detector.Evict() {
		e.Dead = append(e.Dead, d.Place)
	}
	if len(e.Dead) > 0 {
		p.call(func() {
			v.run(func(m *fairmodel.Lock) {
				for _, owner := range m.Evict(e) {
					p.sim.judge.removed(owner, evicted)
				}
			})
		}, func(bool) {})
	}
	if owner := k.detector.Nudge(p.local()); owner != "" {
		p.call(func() { v.run(func(m *fairmodel.Lock) { m.Nudge(owner) }) }, func(bool) {})
	}
	k.finish()
}

// finish ends a round.
func (k *heartbeat) finish() {
	k.busy = false
	if k.soon {
		k.beat()
		return
	}
	k.next = k.p.timer(k.detector.Next(k.p.local()).Milliseconds(), k.beat)
}
