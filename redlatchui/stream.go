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
	// streamsFor ends a stream, so that broken connections do not stay. The browser opens another one.
	streamsFor = 10 * time.Minute
	// againAfter reloads a page without changes, which says if the server no longer answers.
	againAfter = 3 * time.Second
	writeTime  = 30 * time.Second
)

// ticker returns a channel that is closed by the next change, nil if there will be none.
type ticker func(ctx context.Context) (changed <-chan struct{}, err error)

// events serves a stream of server-sent events, an event for each change. The page then reloads.
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
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that would buffer
	out := http.NewResponseController(w)
	for n := 0; err == nil && ctx.Err() == nil; n++ {
		data := strconv.Itoa(n)
		if changed == nil { // the page is no longer kept up to date
			data = "last"
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // if the server has deadlines
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

// ticks returns the ticker for the lock, server, numbers or locks that a request names.
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
