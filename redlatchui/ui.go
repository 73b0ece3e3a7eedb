package redlatchui

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// DefaultEvery is the least time between two scans unless Options say.
const DefaultEvery = 2 * time.Second

// ErrCluster says that the client is one of a cluster, through an adapter to another Redis
// client, which has no way to each master. A client of redlatch.Open has, and so has the command
// redlatch ui.
var ErrCluster = board.ErrCluster

// Options say what the page shows and to whom. The zero Options show all locks to browsers on
// this machine.
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
}

//go:embed page
var files embed.FS

// Page is the page. It is an http.Handler, safe for concurrent use, and runs until Close.
type Page struct {
	board   *board.Board
	options Options
	where   string
	shown   func(name string) bool
	pages   *template.Template
	handler http.Handler
	ctx     context.Context
	cancel  context.CancelFunc
}

// New returns a page for the locks on client's server. It asks on the client's connections, by
// names as they are on the server, whatever name mapper the client has. The client must stay
// open until the page is closed, which leaves it open. It sends nothing before the page is
// opened. Errors: ErrCluster, and for Options that do not make sense.
func New(client *redlatch.Client, o Options) (*Page, error) {
	source, err := board.FromClient(client)
	if err != nil {
		return nil, err
	}
	return newPage(source, o)
}

// ForServer is New for the command redlatch ui. It connects to srv, which may be a cluster, with
// connections that the page closes. Its errors are those of connect.Server.Problem.
func ForServer(ctx context.Context, srv *connect.Server, o Options) (*Page, error) {
	source, err := board.FromServer(ctx, srv)
	if err != nil {
		return nil, err
	}
	return newPage(source, o)
}

func newPage(source *board.Source, o Options) (*Page, error) {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	p := &Page{options: o, where: source.Place, shown: matching(o.Pattern)}
	if o.Every < board.LeastEvery {
		return nil, errors.Join(errors.New("redlatchui: Options.Every must be at least 100ms"), source.Close())
	}
	p.pages = template.Must(template.New("").Funcs(functions).ParseFS(files, "page/*.html"))
	p.board = board.New(board.Config{Source: source, Pattern: o.Pattern, Every: o.Every})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.handler = guard(o.Hosts, p.routes())
	return p, nil
}

// Close ends the streams to browsers and all commands, and waits for the commands. Requests
// after it are answered with an error.
func (p *Page) Close() error {
	p.cancel()
	return p.board.Close()
}

// ServeHTTP answers a request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// routes are the pages. All links are relative, so that a prefix can be stripped in front.
func (p *Page) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.locks)
	mux.HandleFunc("GET /lock", p.lock)
	mux.HandleFunc("GET /who", p.who)
	mux.HandleFunc("GET /server", p.server)
	mux.HandleFunc("GET /events", p.events)
	static, err := fs.Sub(files, "page/static")
	if err != nil {
		panic(err) // it is embedded
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	return mux
}
