package ui

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/redlatch/redlatch/internal/tool/cli"
)

// credentials are the user and password that browsers must give; nil for none.
type credentials struct{ user, password [sha256.Size]byte }

// readAuth reads the file of --auth, "" for none.
func readAuth(name string) (*credentials, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, cli.Usagef("--auth: %w", err)
	}
	line := strings.TrimRight(string(text), "\r\n")
	user, password, is := strings.Cut(line, ":")
	if !is || user == "" || password == "" || strings.ContainsAny(line, "\r\n") {
		return nil, cli.Usagef("--auth: %s must have one line, user:password", name)
	}
	return &credentials{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))}, nil
}

// protect lets requests with the credentials through to next.
func (c *credentials) protect(next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		givenUser, givenPassword := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))
		// Both are compared, and in a time that says nothing of what is in them.
		if subtle.ConstantTimeCompare(givenUser[:], c.user[:])&subtle.ConstantTimeCompare(givenPassword[:], c.password[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="redlatch", charset="UTF-8"`)
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "user and password, please", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
