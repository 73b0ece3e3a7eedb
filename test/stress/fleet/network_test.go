//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/embedded"
)

// keepAlive is the time after which each end closes a connection that has become a black hole, as operating systems do.
const keepAlive = 10 * time.Second

type direction int

const (
	up   direction = iota // to the server
	down                  // to the client
)

// network connects one client to the server.
type network struct {
	server  *embedded.Server
	latency time.Duration
	ahead   time.Duration
	seed    uint64
	wg      *sync.WaitGroup

	mu      sync.Mutex // guards the fields below; never held across I/O
	dials   uint64
	held    [2]time.Time // by direction; data does not arrive before this time
	refused time.Time    // connections are not accepted before this time
	gone    bool         // connections are never accepted again
	conns   map[*link]struct{}
}

var errRefused = errors.New("connection refused")

// dial takes one round trip, and waits while the network is stalled.
func (n *network) dial(ctx context.Context) (redis.Conn, error) {
	for first := true; ; first = false {
		wait := n.standsStill()
		if first {
			wait = max(wait, 2*n.latency)
		}
		if wait <= 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
	if n.refuses() {
		return nil, errRefused
	}
	l, client, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.serve()
	return redis.NewConn(client, 0, commandTimeout), nil
}

func (n *network) standsStill() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(time.Until(n.held[up]), time.Until(n.held[down]))
}

func (n *network) refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone || time.Now().Before(n.refused)
}

// connect opens a connection to the server, and returns the client's end of it.
func (n *network) connect(ctx context.Context) (*link, net.Conn, error) {
	near, err := n.server.DialNet(ctx, "", "")
	if err != nil {
		return nil, nil, err
	}
	client, far := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	l := &link{network: n, far: far, near: near}
	for d := range l.lanes {
		l.lanes[d] = &lane{
			wake: make(chan struct{}, 1),
			rnd:  rand.New(rand.NewPCG(n.seed, n.dials<<1|uint64(d))),
		}
	}
	n.conns[l] = struct{}{}
	return l, client, nil
}

// arrives returns the earliest arrival of data sent or held back now.
func (n *network) arrives(d direction) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held[d]
}

// hold delays all data in one direction for the duration t.
func (n *network) hold(d direction, t time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if until := time.Now().Add(t); until.After(n.held[d]) {
		n.held[d] = until
	}
}

// refuse rejects connections for the duration t, or forever if t is negative.
func (n *network) refuse(t time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused, n.gone = time.Now().Add(t), n.gone || t < 0
}

func (n *network) each(f func(*link)) {
	n.mu.Lock()
	var all []*link
	for l := range n.conns {
		all = append(all, l)
	}
	n.mu.Unlock()
	for _, l := range all {
		f(l)
	}
}

func (n *network) open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// link is a connection: two pipes joined by two lanes.
//
//	client ══pipe══ far ──lane up──▶ near ══pipe══ server
//	                    ◀─lane down─
type link struct {
	network   *network
	far, near net.Conn
	lanes     [2]*lane
}

func (l *link) serve() {
	var all sync.WaitGroup
	all.Go(func() { l.lanes[up].fill(l.far, l.network.latency, 0) })
	all.Go(func() { l.lanes[down].fill(l.near, l.network.latency, l.network.ahead) })
	all.Go(func() { l.deliver(up, l.near) })
	all.Go(func() { l.deliver(down, l.far) })
	l.network.wg.Go(func() {
		all.Wait()
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.conns, l)
	})
}

// deliver writes each packet of a lane to the receiver when it is due.
func (l *link) deliver(d direction, to net.Conn) {
	defer func() { _ = to.Close() }() // the lane has ended
	for {
		p := l.lanes[d].next()
		for at := p.at; ; {
			time.Sleep(time.Until(at))
			held := l.lanes[d].heldUntil(l.network.arrives(d))
			if !held.After(time.Now()) {
				break
			}
			at = held.Add(l.lanes[d].jitter())
		}
		if l.lanes[d].lost() {
			continue // until it is torn
		}
		if p.data == nil {
			return
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// lose makes directions a black hole, which drops even the end of the connection.
func (l *link) lose(ds ...direction) {
	for _, d := range ds {
		l.lanes[d].lose()
	}
	time.AfterFunc(keepAlive, l.tear)
}

// cut resets the connection on the client's side. Data that is in flight to the server arrives late or not at all.
func (l *link) cut(late time.Duration) {
	_ = l.far.Close()
	if late <= 0 {
		l.tear()
		return
	}
	l.lanes[up].delay(time.Now().Add(late))
}

// tear closes both ends.
func (l *link) tear() {
	for _, c := range l.lanes {
		c.tear()
	}
	_ = l.far.Close()
	_ = l.near.Close()
}

// packet contains the data of one write; without data it marks the end of the connection.
type packet struct {
	at   time.Time
	data []byte
}

// lane is one direction of a connection. It keeps the order of packets.
type lane struct {
	wake chan struct{} // has capacity 1; makes deliver check the queue again
	rnd  *rand.Rand    // used by the lane's sender, and by its deliverer after a delay

	mu    sync.Mutex // guards rnd and the fields below
	queue []packet
	last  time.Time // arrival of the last packet
	late  time.Time // data does not arrive before this time
	hole  bool      // whether data is dropped
	torn  bool      // whether both ends are closed
}

// jitter keeps packets from arriving at the same time.
func (l *lane) jitter() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(1 + l.rnd.Int64N(200_000))
}

// fill reads packets until the end of the connection.
func (l *lane) fill(from net.Conn, latency, ahead time.Duration) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			l.put(shiftTime(append([]byte(nil), buf[:n]...), ahead), latency+l.jitter())
		}
		if err != nil {
			l.put(nil, latency+l.jitter())
			return
		}
	}
}

func (l *lane) put(data []byte, delay time.Duration) {
	l.mu.Lock()
	at := time.Now().Add(delay)
	if !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	l.queue = append(l.queue, packet{at, data})
	l.mu.Unlock()
	l.poke()
}

func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // the receiver will check the queue anyway
	}
}

// next waits for a packet. A torn lane returns the end of the connection.
func (l *lane) next() packet {
	for {
		l.mu.Lock()
		if l.torn {
			l.mu.Unlock()
			return packet{}
		}
		if len(l.queue) > 0 {
			p := l.queue[0]
			l.queue = l.queue[1:]
			l.mu.Unlock()
			return p
		}
		l.mu.Unlock()
		<-l.wake
	}
}

func (l *lane) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hole && !l.torn
}

func (l *lane) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hole = true
}

// heldUntil returns when data may arrive, given the network's hold.
func (l *lane) heldUntil(network time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn || network.After(l.late) {
		return network
	}
	return l.late
}

func (l *lane) delay(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = until
}

func (l *lane) tear() {
	l.mu.Lock()
	l.torn = true
	l.mu.Unlock()
	l.poke()
}

// timeReply matches the reply to TIME: seconds and microseconds. No other reply in a fleet begins
// with nine digits.
var timeReply = regexp.MustCompile(`\*2\r\n\$9\r\n(\d{9})\r\n\$\d\r\n(\d{1,6})\r\n`)

// shiftTime adds ahead, the lead of the client's clock, to the time in a reply. A client that uses
// the server's time then stamps its fair locks like a client with such a clock.
func shiftTime(replies []byte, ahead time.Duration) []byte {
	if ahead == 0 {
		return replies
	}
	return timeReply.ReplaceAllFunc(replies, func(reply []byte) []byte {
		parts := timeReply.FindSubmatch(reply)
		seconds, _ := strconv.ParseInt(string(parts[1]), 10, 64) // digits
		micros, _ := strconv.ParseInt(string(parts[2]), 10, 64)
		at := time.Unix(seconds, micros*1000).Add(ahead).UnixMicro()
		s, us := strconv.FormatInt(at/1e6, 10), strconv.FormatInt(at%1e6, 10)
		return fmt.Appendf(nil, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(s), s, len(us), us)
	})
}

func TestClockShiftChangesOnlyTIMEReply(t *testing.T) {
	t.Parallel()
	const replies = "+OK\r\n*2\r\n$9\r\n946684800\r\n$1\r\n7\r\n*2\r\n$3\r\nabc\r\n$1\r\n1\r\n"
	require.Equal(t, "+OK\r\n*2\r\n$9\r\n946684860\r\n$6\r\n700007\r\n*2\r\n$3\r\nabc\r\n$1\r\n1\r\n",
		string(shiftTime([]byte(replies), 60_700*time.Millisecond)))
	require.Equal(t, replies, string(shiftTime([]byte(replies), 0)))
}
