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
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

// DefaultEvery is the least time between two scans unless Options say.
const DefaultEvery = 2 * time.Second

// ErrCluster says that the client is one of a cluster, through an adapter to another Redis
// client, which has no way to each master. A client of redlatch.Open has, and so has the command
// redlatch ui.
var ErrCluster = board.ErrCluster

// Options say what the page shows and to whom. The zero Options show all locks to browsers on
// this machine, and let them change nothing.
type Options struct {
	// Pattern is what the names of the locks must match, as MATCH of SCAN has it, such as
	// "orders:*". "" is all. A lock of another name has no page.
	Pattern string
	// Hosts are the names by which browsers reach the page, without ports, besides localhost,
	// 127.0.0.1 and ::1. A request for another host is refused: it comes from a page whose
	// name was pointed here.
	Hosts []string
	// Every is the least time between two scans of all locks, DefaultEvery when it is 0, and
	// 100 ms at least. A scan that takes long is followed by a pause of four times that.
	Every time.Duration
	// Access says what the viewer who sends a request may do. It is called once for each
	// request, also of streams and concurrently, and must not block. nil is ReadOnly for all
	// that reach the page.
	Access func(*http.Request) Access
	// ReadOnly leaves of what Access grants no more than ReadOnly.
	ReadOnly bool
	// User names the viewer who sends a request, for Audit: such as the user of the login in
	// front. It is called as Access is, for actions alone. nil names none. Of one user, or of
	// one address where there is none, four actions may be under way.
	User func(*http.Request) string
	// Audit is called for each action that a viewer tries. For one that is begun it is called
	// twice: before anything is sent to Redis, with OutcomeBegun, where an error keeps the
	// action from being done, and when it has ended. What is denied or refused before that is
	// reported once. Requests that other sites' pages make are refused without. The context is
	// that of the request, and does not end with it. It may be called concurrently. nil reports
	// nothing.
	Audit func(context.Context, Attempt) error
}

//go:embed page
var files embed.FS

// Page is the page. It is an http.Handler, safe for concurrent use, and runs until Close.
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

// New returns a page for the locks on client's server. It asks on the client's connections, by
// names as they are on the server, whatever name mapper the client has. The client must stay
// open until the page is closed, which leaves it open. It sends nothing before the page is
// opened. Errors: ErrCluster, and redlatch.ErrInvalid for a nil client and for Options that do not
// make sense.
func New(client *redlatch.Client, o Options) (*Page, error) {
	source, err := board.FromClient(client)
	if err != nil {
		return nil, err
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	p := &Page{options: o, source: source, shown: inspect.Match(cmp.Or(o.Pattern, "*"))}
	if o.Every < board.LeastEvery {
		return nil, errors.Join(fmt.Errorf("%w: Options.Every of the page must be at least 100ms", redlatch.ErrInvalid), source.Close())
	}
	p.pages = template.Must(template.New("").Funcs(functions).ParseFS(files, "page/*.html"))
	p.board = board.New(source, o.Pattern, o.Every)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.handler = guard(o.Hosts, p.admit(p.routes()))
	p.close = sync.OnceValue(p.end)
	return p, nil
}

// Close ends the streams to browsers, actions and all commands, and waits for actions and
// commands. Requests after it are answered with an error.
func (p *Page) Close() error { return p.close() }

func (p *Page) end() error {
	p.cancel()
	p.acting.close()
	return p.board.Close()
}

// ServeHTTP answers a request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// static serves a file, without a list of all.
func (p *Page) static(w http.ResponseWriter, r *http.Request) {
	file := "page/static/" + r.PathValue("file")
	if _, err := fs.Stat(files, file); err != nil {
		noPage(w, r)
		return
	}
	http.ServeFileFS(w, r, files, file) //nolint:gosec // of those that are embedded
}

// noPage answers requests for what is not there: as text, since the links of a page are relative to
// the page of all locks, and lead elsewhere below another path.
func noPage(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "There is no such page.", http.StatusNotFound)
}

// aboutEvents answers HEAD for a stream, which has nothing to wait for.
func (p *Page) aboutEvents(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
}

// routes are the pages. All links are relative, so that a prefix can be stripped in front.
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
	mux.HandleFunc("GET /static/{file}", p.static)
	mux.HandleFunc("GET /", noPage)
	return mux
}
