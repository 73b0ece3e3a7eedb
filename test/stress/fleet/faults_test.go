package fleet

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

type faultKind string

// What goes wrong. Those of one client come first, then those of the server.
const (
	slowUp    faultKind = "slow up"    // what is sent arrives at the end of the time
	slowDown  faultKind = "slow down"  // the same for replies
	pause     faultKind = "pause"      // both: the client stands still, as others see it
	loseUp    faultKind = "lose up"    // its connections swallow what is sent, from now on
	loseDown  faultKind = "lose down"  // and what is replied
	partition faultKind = "partition"  // both, and none can be made
	cut       faultKind = "cut"        // its connections are reset, with what is under way
	repeat    faultKind = "repeat"     // they are reset; what is under way arrives late, behind what is sent anew
	refuse    faultKind = "refuse"     // they are reset, and none can be made
	kill      faultKind = "kill"       // it is gone
	replace   faultKind = "replace"    // it is closed, and its callers go on with a new one
	shutdown  faultKind = "shutdown"   // the same by Shutdown
	freeze    faultKind = "freeze"     // the server stands still
	restart   faultKind = "restart"    // it starts again with its data, without its scripts
	loading   faultKind = "loading"    // it refuses all commands
	loseReply faultKind = "lose reply" // it runs commands and cuts their connections
	drift     faultKind = "drift"      // its clock runs ahead, by less than the loss margin
	clockStep faultKind = "clock step" // its clock jumps ahead, by more than any lease
	empty     faultKind = "empty"      // it starts again without its data
	forget    faultKind = "forget"     // it loses one lock
)

var faultKinds = []faultKind{
	slowUp, slowDown, pause, loseUp, loseDown, partition, cut, repeat, refuse, kill, replace, shutdown,
	freeze, restart, loading, loseReply, drift, clockStep, empty, forget,
}

// driftStep is a tenth of the smallest loss margin, and a little less: so many faults there are.
const driftStep = 25 * time.Millisecond

// strike makes a fault happen, and returns when it has ended.
func (f *fleet) strike(x fault) {
	time.Sleep(x.At.d())
	r := history.Record{Kind: history.Fault, Op: string(x.Kind)}
	r.T = f.now()
	r.Until = r.T
	if f.strikeServer(x, &r) || f.processes[x.Client].strike(x, &r) {
		r.Until += x.For.d()
	}
	f.write(r)
	if x.Kind == loading {
		time.Sleep(x.For.d())
		f.server.Heal()
	}
}

// strike is for the faults of one client. It reports whether they last.
func (p *process) strike(x fault, r *history.Record) (lasts bool) {
	n, span := p.network, x.For.d()
	switch x.Kind {
	case slowUp:
		n.hold(up, span)
	case slowDown:
		n.hold(down, span)
	case pause:
		n.hold(up, span)
		n.hold(down, span)
	case loseUp:
		n.each(func(l *link) { l.lose(up) })
	case loseDown:
		n.each(func(l *link) { l.lose(down) })
	case partition:
		n.refuse(span)
		n.each(func(l *link) { l.lose(up, down) })
	case cut:
		n.each(func(l *link) { l.cut(0) })
	case repeat:
		n.each(func(l *link) { l.cut(span) })
	case refuse:
		n.refuse(span)
		n.each(func(l *link) { l.cut(0) })
	default:
		p.end(x, r)
		return false
	}
	return true
}

// end is for faults that end a client.
func (p *process) end(x fault, r *history.Record) {
	switch x.Kind {
	case kill:
		p.die(r.T)
	case replace, shutdown:
		old := p.current()
		if p.ctx.Err() != nil || p.open() != nil {
			return
		}
		if x.Kind == replace {
			p.close("close", old, 0, (*redlatch.Client).Close)
			return
		}
		p.close("shutdown", old, x.For.d(), func(c *redlatch.Client) error {
			ctx, cancel := context.WithTimeout(context.Background(), x.For.d())
			defer cancel()
			return c.Shutdown(ctx)
		})
	}
}

// die ends the process as far as the others can see.
func (p *process) die(at history.Time) {
	p.mu.Lock()
	var live []*held
	for h := range p.holds {
		live = append(live, h)
	}
	p.mu.Unlock()
	for _, h := range live {
		p.valid(h)
	}
	p.write(history.Record{T: at, Kind: history.Kill})
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.network.refuse(-1)
	p.network.each(func(l *link) { l.cut(0) })
	p.kill()
}

// strikeServer is for the faults of the server. It reports whether they last.
func (f *fleet) strikeServer(x fault, r *history.Record) (lasts bool) {
	span := x.For.d()
	switch x.Kind {
	case freeze:
		for _, p := range f.processes {
			p.network.hold(up, span)
			p.network.hold(down, span)
		}
	case restart:
		f.down(span)
	case empty:
		f.down(span)
		if f.ask("FLUSHALL") != nil { // nil: it is loading
			r.Key = "*"
		}
		f.write(history.Record{T: r.T, Until: r.T + span, Kind: history.Fault, Op: "down"})
		return false
	case loading:
		f.server.FailWith("LOADING Redis is loading the dataset in memory")
	default:
		f.strikeKeys(x, r)
		return false
	}
	return true
}

// strikeKeys is for the faults of the server that take no time.
func (f *fleet) strikeKeys(x fault, r *history.Record) {
	switch x.Kind {
	case loseReply:
		f.server.LoseReplies(1 + int(x.For)%3)
	case drift:
		f.drifted.Store(true)
		f.server.FastForward(driftStep)
	case clockStep:
		f.drifted.Store(true)
		f.server.FastForward(f.longestLease() + x.For.d())
		r.Key = "*"
	case forget:
		if f.ask("DEL", keyName(x.Key)) != nil {
			r.Key = keyName(x.Key)
		}
	}
}

// down ends all connections, and refuses new ones for a time.
func (f *fleet) down(span time.Duration) {
	for _, p := range f.processes {
		p.network.refuse(span)
		p.network.each(func(l *link) { l.cut(0) })
	}
	f.ask("SCRIPT", "FLUSH")
}
