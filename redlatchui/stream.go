package redlatchui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

const (
	// streams ends a stream after this time: the browser opens it anew, and a connection that
	// is gone unnoticed does not stay.
	streamsFor = 10 * time.Minute
	// beats is how often a stream says that it is alive.
	beats = 15 * time.Second
)

// ticker is a view whose values are not read, but counted.
type ticker func(ctx context.Context) (changed <-chan struct{})

// events is a stream of server-sent events: one for each change of what a page shows, without
// what has changed, which the page asks for itself.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	next, end, err := p.ticks(r)
	if err != nil {
		http.Error(w, fullSentence(strings.TrimPrefix(err.Error(), "redlatchui: ")), statusOf(err))
		return
	}
	defer end()
	ctx, cancel := context.WithTimeout(r.Context(), streamsFor)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that would wait for more
	beat := time.NewTicker(beats)
	defer beat.Stop()
	changed := next(ctx)
	for n := 0; changed != nil; n++ {
		_, _ = fmt.Fprintf(w, "event: change\ndata: %d\n\n", n)
		for waiting := true; waiting; {
			_ = out.SetWriteDeadline(time.Now().Add(2 * beats)) // a server may have none
			if err := out.Flush(); err != nil {
				return
			}
			select {
			case <-changed:
				waiting = false
			case <-beat.C:
				_, _ = fmt.Fprint(w, ":\n\n") // Flush has the error
			case <-ctx.Done():
				return
			}
		}
		changed = next(ctx)
	}
	if ctx.Err() == nil { // it is not kept up to date any more: the page says so
		_, _ = fmt.Fprint(w, "event: change\ndata: last\n\n")
		_ = out.Flush() // a browser that is gone needs none
	}
}

// ticks returns what waits for the next change of what the request names: a lock, the
// server, all numbers, or all locks.
func (p *Page) ticks(r *http.Request) (next ticker, end func(), err error) {
	if !isLock(r) {
		switch r.URL.Query().Get("about") {
		case numbers:
			return tick(p.board.Numbers())
		case aboutServer:
			return tick(p.board.Server())
		}
		return tick(p.board.Locks())
	}
	name, err := p.named(r)
	if err != nil {
		return nil, nil, err
	}
	return tick(p.board.Lock(name, clientOf(r)))
}

// tick returns what waits for the next change of a view.
func tick[T any](v *board.View[T], err error) (next ticker, end func(), _ error) {
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) <-chan struct{} { _, changed := v.Get(ctx); return changed }, v.Close, nil
}
