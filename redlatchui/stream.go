package redlatchui

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

const (
	// streamsFor ends a stream after this time: the browser opens it anew, and a connection that
	// is gone unnoticed does not stay.
	streamsFor = 10 * time.Minute
	// againAfter is after how long without a change the page is loaded all the same: a server that
	// does not answer must not look like one on which nothing happens.
	againAfter = 3 * time.Second
	// writeTime bounds a write to a browser.
	writeTime = 30 * time.Second
)

// ticker returns a channel that is closed when what a page shows has changed, nil if it is not kept up
// to date any more.
type ticker func(ctx context.Context) (changed <-chan struct{}, err error)

// events is a stream of server-sent events: one for each change of what a page shows, without
// what has changed, which the page asks for itself.
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
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that would wait for more
	out := http.NewResponseController(w)
	for n := 0; err == nil && ctx.Err() == nil; n++ {
		data := strconv.Itoa(n)
		if changed == nil { // the page says that it is not kept up to date any more
			data = "last"
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // a server may have none
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

// ticks returns what waits for the next change of what the request names: a lock, the
// server, all numbers, or all locks.
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
