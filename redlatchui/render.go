package redlatchui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

type frame struct {
	// Section is the page's link in the header.
	Section, Title, Where, Pattern string
	// Stream is "" for a static page.
	Stream   string
	ReadOnly bool
	At, Err  string

	shown board.Seen
	keys  map[string]int // number of rows with each key
}

// Key returns the ID by which updates find a row: a hash of the values that identify the row, and a number if the
// hash is not unique on the page.
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
	f := frame{Title: title, Where: sanitize.Message(p.source.Place), ReadOnly: p.options.Access == nil}
	if p.options.Pattern != "" {
		f.Pattern = board.NameText(p.options.Pattern)
	}
	return f
}

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
	f.Err += fmt.Sprintf(" The data is stale: it was read at %s UTC, %s ago.", s.At.UTC().Format(time.DateTime), minutes(time.Since(s.At)))
}

// Span returns "" for the zero time.
func (f *frame) Span(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return board.Span(f.shown.Moment().Sub(since))
}

func (f *frame) LeaseOf(e board.Entry) string {
	switch {
	case len(e.Holders) == 0:
		return ""
	case e.TTL < 0:
		return "none"
	}
	return board.Span(e.TTL - f.shown.Moment().Sub(f.shown.At))
}

// minutes returns text that changes at most once a minute, because screen readers read each change.
func minutes(d time.Duration) string {
	if d < time.Minute {
		return "less than a minute"
	}
	if d < 2*time.Minute {
		return "1 min"
	}
	return board.Span(d)
}

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
	var out bytes.Buffer // so that an error does not follow half a page
	if err := p.pages.ExecuteTemplate(&out, name, page); err != nil {
		http.Error(w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // fails if the browser has gone
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
	case outcomeOf(err) == outcomeRefused:
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

const (
	// streamsFor limits the time of a stream, so that broken connections do not linger. The browser then opens a new
	// one.
	streamsFor = 10 * time.Minute
	// againAfter is when a page without changes is sent again, to show whether the server replies.
	againAfter = 3 * time.Second
	writeTime  = 30 * time.Second
)

// ticker returns a channel that is closed at the next change, or nil if no change will follow.
type ticker func(ctx context.Context) (changed <-chan struct{}, err error)

func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), streamsFor)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	var changed <-chan struct{}
	next, err := p.ticks(r)
	if err == nil {
		changed, err = next(ctx)
	}
	if err != nil {
		http.Error(w, fullSentence(strings.TrimPrefix(err.Error(), "redlatchui: ")), statusOf(err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // makes proxies pass events on immediately
	out := http.NewResponseController(w)
	for n := 0; err == nil && ctx.Err() == nil; n++ {
		data := strconv.Itoa(n)
		if changed == nil {
			data = "last"
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // servers may have deadlines
		_, _ = fmt.Fprintf(w, "event: change\ndata: %s\n\n", data)
		if err := out.Flush(); err != nil || changed == nil {
			return
		}
		select {
		case <-changed:
		case <-time.After(againAfter):
		case <-ctx.Done():
		}
		changed, err = next(ctx)
	}
}

func (p *Page) ticks(r *http.Request) (ticker, error) {
	switch about := r.URL.Query().Get("about"); {
	case isLock(r):
	case about == numbers:
		return tick(p.board.Numbers), nil
	case about == aboutServer:
		return tick(p.board.Server), nil
	default:
		return tick(p.board.Locks), nil
	}
	name, err := p.named(r)
	if err != nil {
		return nil, err
	}
	feed, err := p.board.Lock(name, sourceOf(r))
	if err != nil {
		return nil, err
	}
	return tick(feed), nil
}

func tick[T any](f *board.Feed[T]) ticker {
	return func(ctx context.Context) (<-chan struct{}, error) {
		_, changed, err := f.Get(ctx)
		return changed, err
	}
}
