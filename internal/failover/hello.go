package failover

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/pubsub"
)

// Channel is the channel on which every Sentinel publishes the master's address: every two seconds,
// and immediately after a failover.
const Channel = "__sentinel__:hello"

// claim is a statement by a Sentinel about the master.
type claim struct {
	name  string // of the master in the Sentinel's configuration
	addr  string // host:port
	epoch int64  // grows with every failover
}

// parseHello parses the payload of a message, which consists of the Sentinel's address, port, ID
// and epoch, followed by the master's name, address, port and epoch.
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

// forgetAfter is how long a claim is valid unless it is repeated. Claims must expire because new
// Sentinels start with epoch 0.
const forgetAfter = 10 * time.Second

type claims map[string]datedClaim

type datedClaim struct {
	claim
	at time.Time
}

// take records c. It reports whether c is the first claim for its name, and whether it announces a
// failover. It ignores older claims, and claims with the same epoch but a different address.
// If the latest claim has not been repeated for forgetAfter, an older claim is treated as the first.
func (s claims) take(c claim, now time.Time) (first, switched bool) {
	last, known := s[c.name]
	if c.epoch == last.epoch && c.addr != last.addr {
		last.epoch++ // not a failover: c counts as older
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

// helloListener does not drop any messages, because the next one comes two seconds later.
type helloListener struct {
	wake chan struct{} // cap 1; receives a value when there is news

	mu     sync.Mutex
	claims claims
	news   news
}

type news struct {
	received bool
	master   string // the address of a first claim or a failover
	failed   error
}

var _ pubsub.Sink = (*helloListener)(nil)

func newHelloListener() *helloListener {
	return &helloListener{wake: make(chan struct{}, 1), claims: claims{}}
}

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
	default:
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
