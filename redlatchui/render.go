package redlatchui

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

// frame is what all pages have.
type frame struct {
	// Section is the link of the header that leads here, Title is the page's, Where the server, Pattern which locks are shown.
	Section, Title, Where, Pattern string
	// Stream is the address of the page's stream, "" for a page that does not change.
	Stream string
	// ReadOnly is true when no viewer may change anything.
	ReadOnly bool
	// At is when what is shown was seen, Err what is wrong.
	At, Err string

	shown board.Seen
	keys  map[string]int // how many rows have each key
}

// Key returns the id of a row's element, by which an update finds it again: a hash of the bytes
// that the row is about, and a number where rows before it are about the same.
func (f *frame) Key(about ...string) string {
	if f.keys == nil {
		f.keys = map[string]int{}
	}
	key := "k" + hashOf(fmt.Sprintf("%q", about))[:32]
	before := f.keys[key]
	f.keys[key]++
	if before > 0 {
		return fmt.Sprintf("%s-%d", key, before)
	}
	return key
}

func (p *Page) frame(title string) frame {
	f := frame{Title: title, Where: sanitize.Message(p.source.Place), ReadOnly: p.options.changesNothing()}
	if p.options.Pattern != "" {
		f.Pattern = nameText(p.options.Pattern)
	}
	return f
}

// seen says when what is shown was seen, what is wrong, and that it is old when it is.
func (f *frame) seen(s *board.Seen) {
	f.shown = *s
	if !s.At.IsZero() {
		f.At = s.At.UTC().Format(time.TimeOnly) + " UTC"
	}
	if s.Err != nil {
		f.Err = fullSentence(sanitize.WithoutPrefix(s.Err.Error()))
	}
	if !s.Old(time.Now()) {
		return
	}
	if s.Err == nil {
		f.Err = "The server does not answer."
	}
	f.Err += fmt.Sprintf(" What is shown is old: it was seen at %s UTC, %s ago.", s.At.UTC().Format(time.DateTime), minutes(time.Since(s.At)))
}

// Span says how long it was since a moment when the page was seen, "" for the zero time.
func (f *frame) Span(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return span(f.shown.Moment().Sub(since))
}

// LeaseOf says what the lease of a lock has left.
func (f *frame) LeaseOf(e board.Entry) string {
	switch {
	case len(e.Holders) == 0:
		return ""
	case e.TTL < 0:
		return "none"
	}
	return span(e.TTL - f.shown.Moment().Sub(f.shown.At))
}

// minutes returns a time that changes once a minute: screen readers say it anew when it does.
func minutes(d time.Duration) string {
	if d < time.Minute {
		return "less than a minute"
	}
	if d < 2*time.Minute {
		return "1 min"
	}
	return span(d)
}

// view serves the page that make returns, with its template, or the error.
func (p *Page) view(make func(*http.Request) (name string, page any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, page, err := make(r)
		if err != nil {
			p.fail(w, err)
			return
		}
		p.show(w, http.StatusOK, name, page)
	}
}

func (p *Page) show(w http.ResponseWriter, status int, name string, page any) {
	var out bytes.Buffer // so that an error is no half of a page
	if err := p.pages.ExecuteTemplate(&out, name, page); err != nil {
		http.Error(w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // a browser that is gone needs no answer
}

func (p *Page) fail(w http.ResponseWriter, err error) {
	page := p.frame("No page")
	page.Err = fullSentence(strings.TrimPrefix(err.Error(), "redlatchui: "))
	if errors.Is(err, errNoAccess) {
		page.Where, page.Pattern = "", ""
	}
	p.show(w, statusOf(err), "error.html", &page)
}

func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case isDenied(err):
		return http.StatusForbidden
	case outcomeOf(err) == OutcomeRefused:
		return http.StatusConflict
	case errors.Is(err, errNoName), errors.Is(err, errForm), errors.Is(err, errReason), errors.Is(err, errUnstated), errors.Is(err, errOddName):
		return http.StatusBadRequest
	case errors.Is(err, errUnknown), errors.Is(err, errHidden):
		return http.StatusNotFound
	case errors.Is(err, board.ErrBusy), errors.Is(err, errActing), errors.Is(err, errCrowd), errors.Is(err, board.ErrClosed):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
