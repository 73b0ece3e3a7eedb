package ui

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli/config"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

type credential struct{ user, password [sha256.Size]byte }

// credentials lists the users of --auth. Nil allows all browsers.
type credentials []credential

func readAuth(name string) (credentials, error) {
	if name == "" {
		return nil, nil
	}
	text, err := config.Read(name)
	if err != nil {
		return nil, cli.Usagef("--auth: %w", err)
	}
	var all credentials
	for line := range strings.Lines(string(text)) {
		user, password, is := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		one := credential{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))}
		if !is || user == "" || password == "" || slices.ContainsFunc(all, func(c credential) bool { return c.user == one.user }) {
			return nil, cli.Usagef("--auth: %s must contain one user:password line per user", name)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, cli.Usagef("--auth: %s is empty", name)
	}
	return all, nil
}

// has takes the same time for all users and passwords.
func (c credentials) has(user, password string) (right, known bool) {
	given := credential{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))}
	found, named := 0, 0
	for i := range c {
		is := subtle.ConstantTimeCompare(given.user[:], c[i].user[:])
		named |= is
		found |= is & subtle.ConstantTimeCompare(given.password[:], c[i].password[:])
	}
	return found == 1, named == 1
}

type gate struct {
	users   credentials
	page    http.Handler
	errors  io.Writer
	guesses guesses
	secret  []byte // key for signing cookies
}

func (c credentials) protect(page http.Handler, errors io.Writer) http.Handler {
	if c == nil {
		return page
	}
	return &gate{users: c, page: page, errors: errors, secret: []byte(rand.Text())}
}

// cookieName is the name of a cookie for browsers in which a user has logged in. Their guesses are counted
// separately, so that other users of the same proxy do not lock them out. The cookie does not authenticate requests.
const cookieName = "redlatch-known"

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, given := r.BasicAuth()
	if !given {
		refuse(w, http.StatusUnauthorized, "This page requires a user and a password.")
		return
	}
	mac := hmac.New(sha256.New, g.secret)
	_, _ = mac.Write([]byte(user)) // Write never fails
	known, from, cookie := false, sourceOf(r.RemoteAddr), hex.EncodeToString(mac.Sum(nil))
	if c, err := r.Cookie(cookieName); err == nil && hmac.Equal([]byte(c.Value), []byte(cookie)) {
		from, cookie = cookieName+user, ""
	}
	right, wait, refused := g.guesses.try(from, func() (right bool) {
		right, known = g.users.has(user, password)
		return right
	})
	switch {
	case right:
		if cookie != "" {
			//nolint:gosec // not Secure, because the server does not use TLS and the cookie does not grant access
			http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		}
		g.page.ServeHTTP(w, r)
	case wait > 0:
		if refused == 1 {
			g.note(r, "too many wrong passwords: temporarily blocked")
		}
		wait = wait.Truncate(time.Second) + time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		refuse(w, http.StatusTooManyRequests, fmt.Sprintf("Too many wrong passwords from this address. Wait %v.", wait))
	default:
		what := "unknown user" // do not log the name, which may be a mistyped password
		if known {
			what = "wrong password of " + sanitize.Word(user)
		}
		if refused > 0 {
			what += fmt.Sprintf(", after %d rejected requests", refused)
		}
		g.note(r, what)
		refuse(w, http.StatusUnauthorized, "Wrong user or password.")
	}
}

func (g *gate) note(r *http.Request, what string) {
	may, dropped := g.guesses.line()
	if !may {
		return
	}
	if dropped > 0 {
		what += fmt.Sprintf("; %d earlier lines omitted", dropped)
	}
	cli.Messagef(g.errors, "login: %s from %s: %s", time.Now().UTC().Format(time.RFC3339), sanitize.Word(r.RemoteAddr), what)
}

func refuse(w http.ResponseWriter, status int, why string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="redlatch", charset="UTF-8"`)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, why, status)
}

const (
	// Each address may try freeGuesses wrong passwords, and another one after each guessEvery.
	freeGuesses, guessEvery = 10, 30 * time.Second
	guessers                = 4096
	// The log may get freeLines lines, and another one after each lineEvery.
	freeLines, lineEvery = 100, time.Second
)

type allowance struct{ whole time.Time } // when all free uses are available again

func (a *allowance) wait(now time.Time, free int, every time.Duration) time.Duration {
	return max(0, a.whole.Sub(now.Add(time.Duration(free-1)*every)))
}

func (a *allowance) use(now time.Time, every time.Duration) {
	if a.whole.Before(now) {
		a.whole = now
	}
	a.whole = a.whole.Add(every)
}

type guesser struct {
	allowance

	refused int // since the last password that was checked
}

// guesses is safe for concurrent use.
type guesses struct {
	mu      sync.Mutex
	of      map[string]*guesser // by address as in sourceOf, or by known browser
	lines   allowance
	dropped int
}

// try calls compare for one password at a time, so that all earlier guesses have been counted. refused is the number
// of refusals since the last comparison.
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

func (g *guesses) add(from string) *guesser {
	if len(g.of) >= guessers {
		var fewest *guesser
		var at string
		for a, by := range g.of {
			if fewest == nil || by.whole.Before(fewest.whole) {
				at, fewest = a, by
			}
		}
		delete(g.of, at)
	}
	if g.of == nil {
		g.of = map[string]*guesser{}
	}
	by := &guesser{}
	g.of[from] = by
	return by
}

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

// sourceOf returns a /64 network for IPv6, because one machine may own all of it.
func sourceOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "" // the connection does not use TCP
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	from, _ := addr.Prefix(bits) // the address has at least this many bits
	return from.String()
}
