package embedded

import "time"

// FailWith makes every command, SUBSCRIBE included, answer the server error
// err, such as "LOADING Redis is loading the dataset in memory", until Heal.
// Its first word is the error's code. It must not hold line breaks. A script that
// runs when FailWith is called finishes first; one that waits for its turn may
// fail with the error wrapped in another, and then has done nothing.
func (s *Server) FailWith(err string) { s.failing.Store(&err) }

// Heal ends what FailWith began, and forgets about replies that LoseReplies has
// yet to lose.
func (s *Server) Heal() {
	s.failing.Store(nil)
	s.lose.Store(0)
}

// LoseReplies lets the next n commands run, but cuts their connections instead
// of answering. Commands that were sent behind one of them on its connection
// may run too, and their answers are lost with it. Error replies do not count
// and pass, so that NOSCRIPT is answered and the script that follows is struck.
// Commands on connections that have subscribed do not count either.
func (s *Server) LoseReplies(n int) { s.lose.Store(int64(n)) }

// takeLoss reports whether the next reply is to be lost, and counts it.
func (s *Server) takeLoss() bool {
	for {
		n := s.lose.Load()
		if n <= 0 {
			return false
		}
		if s.lose.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// DropConnections cuts every connection. New ones are welcome. It returns at
// once: a command that was on its way may still run, and the server forgets
// their subscriptions a moment later.
func (s *Server) DropConnections() { s.drop(func(*conn) bool { return true }) }

// DropSubscribers cuts every connection that has ever subscribed to something,
// in the same way.
func (s *Server) DropSubscribers() { s.drop((*conn).isSubscribed) }

func (s *Server) drop(which func(*conn) bool) {
	s.mu.Lock()
	var doomed []*conn
	for c := range s.conns {
		if which(c) {
			doomed = append(doomed, c)
		}
	}
	s.mu.Unlock()
	for _, c := range doomed {
		c.drop()
	}
}

// FastForward takes d off the time that every key has left, as if d had passed.
// The server's TIME does not change.
func (s *Server) FastForward(d time.Duration) { s.mini.FastForward(d) }

// SetTime stops the server's clock at t: TIME answers t, and keys lose as much
// of their time as the clock went forward, if it did. From then on time passes
// on the server only through SetTime and FastForward. The zero time sets the
// clock to the process's and lets it run again, at no cost to the keys.
func (s *Server) SetTime(t time.Time) {
	if !t.IsZero() {
		s.mini.SetTime(t)
		return
	}
	// In three steps, since with the clock running the jump from the zero time
	// would count as time that passed.
	s.mini.ClockTTL(false)
	s.mini.SetTime(time.Time{})
	s.mini.ClockTTL(true)
}
