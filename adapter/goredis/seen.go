package goredis

import (
	"net"
	"sync"
)

// seenMost is how many addresses are remembered: those of the connections that there
// are, and of the ones before.
const seenMost = 2

// seen remembers where the latest connections led to.
type seen struct {
	mu    sync.Mutex // guards addrs
	addrs []string
}

func (s *seen) add(addr net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs = append(s.addrs, addr.String())
	if len(s.addrs) > seenMost {
		s.addrs = s.addrs[1:]
	}
}

// where reports whether there are connections, and whether all of them led to addr.
func (s *seen) where(addr string) (some, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.addrs {
		if a != addr {
			return true, false
		}
	}
	return len(s.addrs) > 0, true
}

// forget makes all of them lead nowhere: they have been dropped.
func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs = nil
}
