package host

import (
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// Link is a proxy that delays traffic by half a round trip in each direction. Its goroutines are
// locked to threads, because the runtime's timers are too coarse.
type Link struct {
	listener net.Listener
	target   string
	delay    time.Duration
	all      sync.WaitGroup

	mu    sync.Mutex // guards conns and ended
	conns []net.Conn
	ended bool
}

// StartLink starts a link to target that adds roundTrip to each round trip.
func StartLink(target string, roundTrip time.Duration) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, target: target, delay: roundTrip / 2}
	l.all.Go(l.accept)
	return l, nil
}

// Addr returns the host:port that clients connect to.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Stop closes the link and its connections and waits for its goroutines.
func (l *Link) Stop() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.all.Wait()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil || !l.keep(client, server) {
			_ = client.Close()
			continue
		}
		l.all.Go(func() { l.carry(server, client) })
		l.all.Go(func() { l.carry(client, server) })
	}
}

func (l *Link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		for _, c := range conns {
			_ = c.Close()
		}
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

type parcel struct {
	data []byte
	due  time.Time
}

func (l *Link) carry(to io.WriteCloser, from io.ReadCloser) {
	parcels := make(chan parcel, 1024)
	l.all.Go(func() { deliver(to, parcels) })
	defer close(parcels)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(l.delay)}
		}
		if err != nil {
			_ = from.Close()
			return
		}
	}
}

func deliver(to io.WriteCloser, parcels <-chan parcel) {
	runtime.LockOSThread() // never unlocked, because sleepUntil changes the thread's timer slack
	defer func() { _ = to.Close() }()
	var err error
	for p := range parcels {
		if err != nil {
			continue
		}
		sleepUntil(p.due)
		if _, err = to.Write(p.data); err != nil {
			_ = to.Close()
		}
	}
}
