package ui

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui"
)

// userOf returns the user that a browser has given, which was checked before.
func userOf(r *http.Request) string {
	user, _, _ := r.BasicAuth()
	return user
}

// audit writes a line for each attempt, and one when it has ended, each with the time at which it
// is written.
func (s *server) audit(_ context.Context, a redlatchui.Attempt) error {
	owners := make([]string, len(a.Owners))
	for i, owner := range a.Owners {
		owners[i] = sanitize.Word(owner)
	}
	said := string(a.Outcome)
	if a.Detail != "" {
		said += ": " + sanitize.Message(a.Detail)
	}
	cli.Messagef(s.errors, "audit: %s %s from %s: %s of lock %q from %s; reason %q; %s", time.Now().UTC().Format(time.RFC3339), sanitize.Word(a.User),
		sanitize.Word(a.Remote), a.Action, a.Lock, strings.Join(owners, ", "), a.Reason, said)
	return nil
}
