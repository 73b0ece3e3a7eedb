package rueidis

import (
	"net"
	"strconv"
	"strings"
	"sync"
)

// helloChannel is where every Sentinel says, on the master and on all replicas, every
// two seconds and at once when something has changed, who it takes for the master.
const helloChannel = "__sentinel__:hello"

// claim is who a Sentinel takes for the master.
type claim struct {
	name  string // of the master, as the Sentinels call it
	addr  string // host:port
	epoch int64  // grows with every switch
}

// parseHello reads a Sentinel's message: its own address, port, id and epoch, and then
// the master's name, address, port and epoch.
func parseHello(payload string) (claim, bool) {
	parts := strings.Split(payload, ",")
	if len(parts) != 8 {
		return claim{}, false
	}
	epoch, err := strconv.ParseInt(parts[7], 10, 64)
	if err != nil {
		return claim{}, false
	}
	return claim{name: parts[4], addr: net.JoinHostPort(parts[5], parts[6]), epoch: epoch}, true
}

// claims are what the Sentinels have said. It is the pubsub.Sink that hears them.
type claims struct {
	wake chan struct{}

	mu     sync.Mutex // guards what follows
	last   map[string]claim
	turned string // the master that was named in place of another, "" if none was
	err    error
	warned bool
}

// Acked is part of pubsub.Sink.
func (*claims) Acked(bool) {}

// Message is part of pubsub.Sink.
func (cs *claims) Message(payload string) {
	c, ok := parseHello(payload)
	if !ok {
		return
	}
	cs.mu.Lock()
	last, known := cs.last[c.name]
	switched := known && c.epoch > last.epoch && c.addr != last.addr
	if !known || c.epoch >= last.epoch {
		if cs.last == nil {
			cs.last = map[string]claim{}
		}
		cs.last[c.name] = c
	}
	if switched {
		cs.turned = c.addr
	}
	cs.mu.Unlock()
	if switched {
		cs.rouse()
	}
}

// Failed is part of pubsub.Sink.
func (cs *claims) Failed(err error) {
	cs.mu.Lock()
	cs.err = err
	cs.mu.Unlock()
	cs.rouse()
}

func (cs *claims) rouse() {
	select {
	case cs.wake <- struct{}{}:
	default:
	}
}

// failure returns why nothing is heard any more, once.
func (cs *claims) failure() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	err := cs.err
	cs.err = nil
	return err
}

// switched returns the master that was named last in place of another, "" if none was.
func (cs *claims) switched() string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.turned
}

// settle drops who was named.
func (cs *claims) settle() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.turned = ""
}

// forget drops all that was said.
func (cs *claims) forget() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.last, cs.turned = nil, ""
}

// told reports whether nobody was told before.
func (cs *claims) told() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	news := !cs.warned
	cs.warned = true
	return news
}
