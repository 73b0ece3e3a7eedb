package ui

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/tool/cli"
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

// has reports whether a user and a password are one of c. It compares each with both, in a time
// that says nothing of what is in them.
func (c credentials) has(user, password string) bool {
	given := credential{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))}
	found := 0
	for i := range c {
		found |= subtle.ConstantTimeCompare(given.user[:], c[i].user[:]) & subtle.ConstantTimeCompare(given.password[:], c[i].password[:])
	}
	return found == 1
}

// protect lets requests with the credentials through to next.
func (c credentials) protect(next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if !c.has(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="redlatch", charset="UTF-8"`)
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "user and password, please", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
