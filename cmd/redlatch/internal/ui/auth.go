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
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// credential is a user and a password that browsers may give.
type credential struct{ user, password [sha256.Size]byte }

// credentials are those of the file of --auth; none lets all browsers in.
type credentials []credential

// readAuth reads the file of --auth, "" for none.
func readAuth(name string) (credentials, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, cli.Usagef("--auth: %w", err)
	}
	var all credentials
	for line := range strings.Lines(string(text)) {
		user, password, is := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		one := credential{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))}
		if !is || user == "" || password == "" || slices.ContainsFunc(all, func(c credential) bool { return c.user == one.user }) {
			return nil, cli.Usagef("--auth: %s must have lines of the form user:password, one for each user", name)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, cli.Usagef("--auth: %s is empty", name)
	}
	return all, nil
}

// has reports whether a user and a password are one of c, and whether the user is. It compares each
// with both, in a time that says nothing of what is in them.
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

// gate lets requests with the credentials of a user through to the page.
type gate struct {
	users   credentials
	page    http.Handler
	errors  io.Writer
	guesses guesses
	secret  []byte // of the cookies
}

// protect lets requests through to page that have one of the credentials, all if c is nil. It
// writes down which are refused.
func (c credentials) protect(page http.Handler, errors io.Writer) http.Handler {
	if c == nil {
		return page
	}
	return &gate{users: c, page: page, errors: errors, secret: []byte(rand.Text())}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, given := r.BasicAuth()
	if !given {
		refuse(w, http.StatusUnauthorized, "This page wants a user and a password.")
		return
	}
	known, from, cookie := false, sourceOf(r.RemoteAddr), g.cookie(user)
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
			//nolint:gosec // not Secure: the program speaks no TLS, and the cookie lets none in
			http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		}
		g.page.ServeHTTP(w, r)
	case wait > 0:
		if refused == 1 {
			g.note(r, "too many wrong passwords: refused for a while")
		}
		wait = wait.Truncate(time.Second) + time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		refuse(w, http.StatusTooManyRequests, fmt.Sprintf("Too many wrong passwords came from this address. Wait %v.", wait))
	default:
		what := "unknown user" // what was typed as one may be a password
		if known {
			what = "wrong password of " + sanitize.Word(user)
		}
		if refused > 0 {
			what += fmt.Sprintf(", after %d that were refused", refused)
		}
		g.note(r, what)
		refuse(w, http.StatusUnauthorized, "User or password is wrong.")
	}
}

// cookieName names the cookie of a browser that has given the password of a user. Its guesses at
// that user's password are counted by themselves: those of others that come from the same
// address, such as a proxy's, do not keep it out. It lets no request through.
const cookieName = "redlatch-known"

func (g *gate) cookie(user string) string {
	mac := hmac.New(sha256.New, g.secret)
	_, _ = mac.Write([]byte(user)) // it never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// note writes down that a request was refused.
func (g *gate) note(r *http.Request, what string) {
	may, dropped := g.guesses.line()
	if !may {
		return
	}
	if dropped > 0 {
		what += fmt.Sprintf("; %d lines before were left out", dropped)
	}
	cli.Messagef(g.errors, "login: %s from %s: %s", time.Now().UTC().Format(time.RFC3339), sanitize.Word(r.RemoteAddr), what)
}

// refuse answers that the page is not shown.
func refuse(w http.ResponseWriter, status int, why string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="redlatch", charset="UTF-8"`)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, why, status)
}
