package ui

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// freeGuesses is how many wrong passwords an address may give at once. It regains one after
	// each guessEvery.
	freeGuesses, guessEvery = 10, 30 * time.Second
	// guessers is how many addresses are counted.
	guessers = 4096
	// freeLines is how many lines are written at once, of all addresses, and one more after each
	// lineEvery.
	freeLines, lineEvery = 100, time.Second
)

// allowance is what may be done so often at once, and then once in a while. The zero allowance is
// whole.
type allowance struct{ whole time.Time }

// wait returns how long to wait until there is some left, 0 when there is.
func (a *allowance) wait(now time.Time, free int, every time.Duration) time.Duration {
	if a.whole.Before(now) {
		return 0
	}
	return max(0, a.whole.Sub(now)-time.Duration(free-1)*every)
}

// use takes one.
func (a *allowance) use(now time.Time, every time.Duration) {
	if a.whole.Before(now) {
		a.whole = now
	}
	a.whole = a.whole.Add(every)
}

// guesser is an address that has given wrong passwords.
type guesser struct {
	allowance

	refused int // how often since the last one that was compared
}

// guesses counts wrong passwords by address. It is safe for concurrent use.
type guesses struct {
	mu      sync.Mutex
	of      map[string]*guesser // by what sourceOf returns, or a known browser
	lines   allowance
	dropped int
}

// try compares a password, unless the address has given too many: then it returns how long to
// wait. Passwords are compared one at a time, so that none is compared before those ahead of it
// are counted. refused is how often the address was refused since the last comparison, this time
// included.
func (g *guesses) try(from string, compare func() bool) (right bool, wait time.Duration, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, by := time.Now(), g.of[from]
	if by != nil {
		if wait = by.wait(now, freeGuesses, guessEvery); wait > 0 {
			by.refused++
			return false, wait, by.refused
		}
	}
	if compare() {
		return true, 0, 0
	}
	if by == nil {
		by = g.add(from)
	}
	by.use(now, guessEvery)
	refused, by.refused = by.refused, 0
	return false, 0, refused
}

// add counts an address. If there are too many, it forgets one: of some, the one that has given
// the fewest.
func (g *guesses) add(from string) *guesser {
	if g.of == nil {
		g.of = map[string]*guesser{}
	}
	if len(g.of) >= guessers {
		var fewest string
		looked, least := 0, time.Time{}
		for at, by := range g.of { // from a random one on
			if looked == 0 || by.whole.Before(least) {
				fewest, least = at, by.whole
			}
			if looked++; looked == 64 {
				break
			}
		}
		delete(g.of, fewest)
	}
	by := &guesser{}
	g.of[from] = by
	return by
}

// line reports whether a line may be written, and how many were not since the last one.
func (g *guesses) line() (may bool, dropped int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.lines.wait(now, freeLines, lineEvery) > 0 {
		g.dropped++
		return false, 0
	}
	g.lines.use(now, lineEvery)
	dropped, g.dropped = g.dropped, 0
	return true, dropped
}

// sourceOf returns what counts as one address: of IPv6 a network of 64 bits, which one machine may
// have for itself.
func sourceOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "" // no TCP: all are one
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	from, _ := addr.Prefix(bits) // it has so many
	return from.String()
}
