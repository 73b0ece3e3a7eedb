package redlatchui

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// Options configures a page. The zero Options show all locks, read-only, to browsers on this machine.
type Options struct {
	// Pattern selects locks by name, like the MATCH option of SCAN. "" selects all locks.
	Pattern string
	// Hosts lists names under which browsers reach the page, without ports, in addition to
	// localhost, 127.0.0.1 and ::1. Requests for other hosts are rejected to prevent DNS rebinding.
	Hosts []string
	// Every is the shortest interval between two scans. It must be at least 100 ms; zero means 2 s.
	// The pause after a scan is at least four times its duration.
	Every time.Duration
	// Access returns the rights of the viewer who sent a request. Nil means ReadOnly. Access is
	// called concurrently, once for each request and stream, and must not block.
	Access func(*http.Request) Access
	// User returns the name of the viewer who sent a request, for Audit. It is called concurrently,
	// and only for actions. Each user, or each address if there is no user, may have four
	// concurrent actions.
	User func(*http.Request) string
	// Audit is called with the outcome "begun" before an action sends anything to Redis, and again after the action.
	// If the first call returns an error, the action is not done. A request that was denied or refused before that is
	// reported once, but not if another site sent it. The context has the values of the request's context, but does
	// not end with it. Audit is called concurrently.
	Audit func(context.Context, Attempt) error
}

//go:embed page
var files embed.FS

// Page is an http.Handler that runs until Close. It is safe for concurrent use.
type Page struct {
	board   *board.Board
	source  *board.Source
	acting  acting
	options Options
	shown   func(name string) bool
	pages   *template.Template
	handler http.Handler
	ctx     context.Context
	cancel  context.CancelFunc
	close   func() error
}

// New returns a page for the locks on the client's server. Names are keys on the server, without the client's name
// mapper. Close the page before the client, which it does not close. New does not send anything. It returns
// redlatch.ErrInvalid for a nil client, for invalid Options, and for a cluster client from an adapter that cannot
// reach every master.
func New(client *redlatch.Client, o Options) (*Page, error) {
	source, err := board.FromClient(client)
	if err != nil {
		return nil, err
	}
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	p := &Page{options: o, source: source, shown: inspect.Match(cmp.Or(o.Pattern, "*"))}
	if o.Every < board.LeastEvery {
		return nil, errors.Join(fmt.Errorf("%w: Options.Every must be at least 100ms", redlatch.ErrInvalid), source.Close())
	}
	p.pages = template.Must(template.New("").Funcs(functions).ParseFS(files, "page/*.html"))
	p.board = board.New(source, o.Pattern, o.Every)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.handler = guard(o.Hosts, p.admit(p.routes()))
	p.close = sync.OnceValue(p.end)
	return p, nil
}

// Close ends all streams and actions, and waits for actions and commands to end. Later requests
// fail.
func (p *Page) Close() error { return p.close() }

func (p *Page) end() error {
	p.cancel()
	p.acting.close()
	return p.board.Close()
}

// ServeHTTP serves the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

func (p *Page) static(w http.ResponseWriter, r *http.Request) {
	file := "page/static/" + r.PathValue("file")
	if _, err := fs.Stat(files, file); err != nil {
		noPage(w, r)
		return
	}
	http.ServeFileFS(w, r, files, file) //nolint:gosec // from the embedded files
}

// bare replies with a page without links and styles, because relative addresses would be wrong.
func bare(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s · Redlatch</title>
<main><h1>%[1]s</h1><p>%s</p></main>
`, http.StatusText(status), template.HTMLEscapeString(text))
}

func noPage(w http.ResponseWriter, _ *http.Request) { bare(w, http.StatusNotFound, "Page not found.") }

func (p *Page) aboutEvents(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
}

// routes uses relative links, so that programs may strip a prefix.
func (p *Page) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.view(p.locks))
	mux.HandleFunc("GET /lock", p.view(p.lock))
	mux.HandleFunc("GET /who", p.view(p.who))
	mux.HandleFunc("GET /server", p.view(p.server))
	mux.HandleFunc("GET /events", p.events)
	mux.HandleFunc("HEAD /events", p.aboutEvents)
	mux.HandleFunc("GET /unlock", p.view(p.unlockForm))
	mux.HandleFunc("POST /unlock", p.act(unlockDeed))
	mux.HandleFunc("GET /evict", p.view(p.evictForm))
	mux.HandleFunc("POST /evict", p.act(evictDeed))
	mux.HandleFunc("GET /evict-all-dead", p.view(p.evictAllForm))
	mux.HandleFunc("POST /evict-all-dead", p.act(evictAllDeed))
	mux.HandleFunc("GET /static/{file}", p.static)
	mux.HandleFunc("GET /", noPage)
	return mux
}
