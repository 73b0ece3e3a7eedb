// Package exporter implements the redlatch exporter command, which serves metrics about locks to
// Prometheus.
//
// The age of a hold is the time since the exporter first saw it, because the server does not store
// when it began. Names of locks are never used as labels.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	// leastEvery ensures that the two looks at a dead waiter are at least a second apart.
	leastEvery = time.Second
	mostEvery  = 24 * time.Hour
	// staleAfter is the age, in intervals, beyond which metrics are stale. It allows for two failed
	// looks.
	staleAfter = 3
)

type exporter struct {
	address string
	every   time.Duration
	match   []string

	collector collector
	errors    io.Writer
	said      string // the last problem that was printed

	mu     sync.Mutex // guards status
	status status
}

// New returns the command exporter.
func New(g *cli.Globals) *cobra.Command {
	e := &exporter{}
	cmd := &cobra.Command{
		Use:     "exporter [PATTERN]",
		Short:   "Serve lock metrics to Prometheus",
		Long:    exporterHelp,
		Example: exporterExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.errors = cmd.ErrOrStderr()
			if len(args) > 0 {
				e.collector.pattern = args[0]
			}
			switch _, _, wrong := net.SplitHostPort(e.address); {
			case e.every < leastEvery || e.every > mostEvery:
				return cli.Usagef("--every must be from 1s to 24h")
			case wrong != nil:
				return cli.Usagef("--listen must be host:port, or :port for all interfaces")
			}
			groups, err := parseGroups(e.match)
			if err != nil {
				return cli.Usagef("--match: %w", err)
			}
			e.collector.by, e.collector.nameAfter = groups, time.Minute
			if e.collector.server, err = g.Server(cmd.Context()); err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), func(ctx context.Context) error { return e.run(ctx, cmd.OutOrStdout()) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.address, "listen", "127.0.0.1:9797", "address to listen on; everyone who can reach it can read the metrics")
	f.DurationVar(&e.every, "every", 15*time.Second, "minimum time between the starts of two scans")
	f.StringArrayVar(&e.match, "match", nil, "GROUP=PATTERN: count matching locks as a group; may be repeated")
	return cmd
}

func (e *exporter) run(ctx context.Context, out io.Writer) error {
	l, err := cli.Listen(e.address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := cli.Serve(ctx, l, onlyLocal(l.Addr(), e.address, e.handler()), func() {})
		cancel(err)
		served <- err
	}()
	fmt.Fprintf(out, "http://%s/metrics\n", l.Addr())
	e.look(ctx)
	return <-served
}

func (e *exporter) look(ctx context.Context) {
	if master, err := e.collector.server.Master(ctx); err == nil && master != "" {
		e.say("warning: %s", e.collector.server.OfReplica(master))
	}
	for {
		began := time.Now()
		found, notCounted, err := e.collector.look(ctx)
		if ctx.Err() != nil {
			return
		}
		e.take(found, notCounted == nil, err)
		e.report(notCounted, err)
		took, scanned := time.Since(began), e.collector.scanned
		if found != nil {
			took, scanned = found.took, found.took
		}
		if inspect.Pause(ctx, pause(e.every, took, scanned)) != nil {
			return
		}
	}
}

// pause returns the pause after a look. A failed look may have waited for a server that did not answer, so only the
// time that its replies took, scanned, can make the pause longer than every.
func pause(every, took, scanned time.Duration) time.Duration {
	return max(every-took, inspect.PauseFactor*scanned, min(inspect.PauseFactor*took, every))
}

func (e *exporter) report(notCounted, err error) {
	text := ""
	switch {
	case err != nil:
		text = err.Error()
	case notCounted != nil:
		text = "redlatch_server_waiters_dead is omitted: cannot count subscribers: " + inspect.NotCounted(notCounted)
	case e.said != "":
		text = "scans are complete again"
	}
	if text != e.said && text != "" {
		e.say("%s", text)
	}
	if err == nil && notCounted == nil {
		text = ""
	}
	e.said = text
}

func (e *exporter) say(format string, args ...any) { cli.Messagef(e.errors, format, args...) }

func (e *exporter) take(found *figures, deadKnown bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status.up = err == nil; !e.status.up {
		e.status.failed++
		return
	}
	e.status.succeeded++
	e.status.figures, e.status.deadKnown = found, deadKnown
}

func (e *exporter) at(now time.Time) status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	if s.figures != nil {
		s.stale = now.Sub(s.figures.at) > staleAfter*max(e.every, (inspect.PauseFactor+1)*s.figures.took)
	}
	return s
}

func (e *exporter) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		s := e.at(now)
		w.Header().Set("Content-Type", contentType)
		_ = s.write(w, now) // fails if the client has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s := e.at(time.Now())
		switch {
		case s.figures == nil:
			http.Error(w, "no scan has succeeded yet", http.StatusServiceUnavailable)
		case s.stale:
			http.Error(w, "the metrics are stale", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ok")
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "redlatch exporter: /metrics, /healthz")
	})
	return mux
}

const exporterHelp = `Serves metrics about the locks of Redisson and Redlatch on a server to
Prometheus, independently of the applications' own metrics. Run one process per
server, cluster, or Sentinel master. It first prints the URL of /metrics.
/healthz returns 503 if there are no metrics or they are stale. On a loopback
address, requests for host names other than localhost are rejected.

Lock names never become labels. --match sorts locks into groups: a lock belongs
to the first group whose pattern matches its name, or to "other". Without
--match, all locks belong to "all". With PATTERN, the exporter reads only locks
whose names match. Patterns have the syntax of redlatch list.

The exporter reads the server at intervals, regardless of the number of
scrapes. Like redlatch list, it scans all keys with short commands. The pause
between scans is at least four times as long as a scan.

The server does not provide:
  - The start of a hold. The age of the oldest hold counts from when the
    exporter first saw it, so the hold is at least that old.
  - The number of threads waiting for a plain lock. The exporter counts
    connections instead, one per process.
  - The purpose of a number. Semaphores are not counted.

A waiter is dead if it had no subscriber in two scans. The exporter checks the
first 200 places of each queue, 20,000 in all. docs/observability.md lists all
metrics, and docs/operations.md the required rights.

Exit codes:
  1      cannot listen
  2      the command line or the address is invalid
  128+n  signal n ended the command: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const exporterExamples = `  redlatch exporter
  redlatch exporter --match 'orders=orders:*' --match 'billing=bill*'
  redlatch exporter --listen :9797 --every 1m     # to all interfaces
  redlatch exporter 'app:*'                       # only locks of app:
  curl -s localhost:9797/metrics`

func (l *look) findCircles(ctx context.Context) {
	circles, err := l.suspects.Circles(ctx, l.server)
	locks := map[string]bool{}
	for _, c := range circles {
		for _, s := range c {
			locks[s.Lock] = true
		}
	}
	for name := range locks {
		l.groups[l.by.of(name)].deadlocked++
	}
	l.circlesKnown = err == nil || errors.Is(err, inspect.ErrCut)
}
