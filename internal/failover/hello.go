package failover

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/pubsub"
)

// Channel is where every Sentinel publishes, on the master and on all replicas, which server
// it considers the master: every two seconds, and immediately after a change.
const Channel = "__sentinel__:hello"

// claim is the server that a Sentinel considers the master.
type claim struct {
	name  string // of the master, as the Sentinels call it
	addr  string // host:port
	epoch int64  // grows with every switch
}

// parseHello reads a Sentinel's message: its own address, port, id and epoch, and then the
// master's name, address, port and epoch.
func parseHello(payload string) (c claim, ok bool) {
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

// forgetAfter is how long a claim counts that no Sentinel repeats, five times the pause
// between two of its messages. Sentinels that are set up anew begin again with epoch 0.
const forgetAfter = 10 * time.Second

// claims are the latest of each master, by name: Sentinels of several sets may watch one
// server.
type claims map[string]datedClaim

type datedClaim struct {
	claim
	at time.Time
}

// take notes c, which was received at now. It reports whether c is the first claim about a
// master, or reports a switch. Claims from before a switch are ignored, and so are those that
// name another address for the same epoch. But if no newer claim has arrived for forgetAfter,
// they are the first again.
func (s claims) take(c claim, now time.Time) (first, switched bool) {
	last, known := s[c.name]
	if c.epoch == last.epoch && c.addr != last.addr {
		last.epoch++ // no switch is between them: c counts as from before
	}
	if known && c.epoch < last.epoch {
		if now.Sub(last.at) < forgetAfter {
			return false, false
		}
		known = false
	}
	s[c.name] = datedClaim{c, now}
	return !known, known && c.epoch > last.epoch && c.addr != last.addr
}

// helloListener receives the hello messages of Sentinels. It drops none: the one that reports
// a switch comes among others, and is not repeated for two seconds.
type helloListener struct {
	wake chan struct{} // cap 1: there is news

	mu     sync.Mutex // guards what follows
	claims claims
	news   news
}

// news is what was received since the last check.
type news struct {
	received bool   // anything
	master   string // an address that was named for the first time, or in place of another
	failed   error  // nothing will be received any more
}

var _ pubsub.Sink = (*helloListener)(nil)

func newHelloListener() *helloListener {
	return &helloListener{wake: make(chan struct{}, 1), claims: claims{}}
}

// take returns what is new.
func (l *helloListener) take() news {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.news
	l.news = news{}
	return n
}

func (l *helloListener) note(f func(n *news)) {
	l.mu.Lock()
	f(&l.news)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // a check is due already
	}
}

func (*helloListener) Acked(bool) {}

func (l *helloListener) Message(payload string) {
	c, ok := parseHello(payload)
	if !ok {
		return
	}
	l.note(func(n *news) {
		n.received = true
		if first, switched := l.claims.take(c, time.Now()); switched || first && n.master == "" {
			n.master = c.addr
		}
	})
}

func (l *helloListener) Failed(err error) { l.note(func(n *news) { n.failed = err }) }
