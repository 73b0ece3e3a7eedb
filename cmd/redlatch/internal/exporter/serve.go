package exporter

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/listing"
)

// staleAfter is how many intervals old figures may be: two looks may fail.
const staleAfter = 3

// current is what is served. It is safe for concurrent use.
type current struct {
	every time.Duration // set before use

	mu     sync.Mutex // guards status
	status Status
}

// take takes the outcome of a look in.
func (c *current) take(figures *Figures, deadKnown bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Up = err == nil; !c.status.Up {
		c.status.Failed++
		return
	}
	c.status.Succeeded++
	c.status.Figures, c.status.DeadKnown = figures, deadKnown
}

// at returns what is to be said at a time.
func (c *current) at(now time.Time) Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	if s.Figures != nil {
		s.Stale = now.Sub(s.Figures.At) > staleAfter*max(c.every, (listing.PauseFactor+1)*s.Figures.Took)
	}
	return s
}

// handler returns what answers.
func (c *current) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		s := c.at(now)
		w.Header().Set("Content-Type", ContentType)
		_ = s.Write(w, now) // an error: the scrape has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s := c.at(time.Now())
		switch {
		case s.Figures == nil:
			http.Error(w, "no look has succeeded yet", http.StatusServiceUnavailable)
		case s.Stale:
			http.Error(w, "the figures are stale", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ok")
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "redlatch exporter: /metrics, /healthz")
	})
	return mux
}
