// Package exporter is the command redlatch exporter: it looks at the locks on a server in
// intervals, and serves the figures to Prometheus.
//
//	Collector.Look ─▶ listing.RunOnMasters    every lock, with short commands
//	       │               │ each lock
//	       │               ▼
//	       │          a group by its name ─▶ sums of the group
//	       │          its holds           ─▶ since when each has been seen
//	       │          its queue           ─▶ which waiters have no subscriber
//	       ▼
//	    Figures ─▶ Figures.Write            the text format of Prometheus
//
// The server knows the owners of a lock, the owners that are queued, and what the lease has
// left. It does not know when a hold began: the Collector remembers when it first saw an owner
// hold a lock. A hold's age is therefore at least what is said, and begins anew when the
// program starts.
//
// Names of locks, owners and clients never become labels: the number of series depends on the
// groups alone.
package exporter

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

const (
	// leastEvery is the shortest interval: a waiter counts as dead when it had no subscriber
	// at two looks, a second apart at least.
	leastEvery = time.Second
	// mostEvery is the longest interval.
	mostEvery = 24 * time.Hour
	// endTime is how long replies that are under way have when a signal ends the program.
	endTime = 2 * time.Second
	// headerTime bounds how long a request may take to arrive.
	headerTime = 5 * time.Second
)

// exporter serves figures.
type exporter struct {
	address string
	every   time.Duration
	match   []string

	collector Collector
	errors    io.Writer
	said      string // the last problem that was printed
	current   current
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	e := &exporter{}
	cmd := &cobra.Command{
		Use:     "exporter [PATTERN]",
		Short:   "Serve figures of all locks to Prometheus",
		Long:    exporterHelp,
		Example: exporterExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.errors = cmd.ErrOrStderr()
			if len(args) > 0 {
				e.collector.Pattern = args[0]
			}
			switch _, _, wrong := net.SplitHostPort(e.address); {
			case e.every < leastEvery || e.every > mostEvery:
				return cli.Usagef("--every must be from 1s to 24h")
			case wrong != nil:
				return cli.Usagef("--listen must be host:port, or :port for all interfaces")
			}
			groups, err := ParseGroups(e.match)
			if err != nil {
				return cli.Usagef("--match: %w", err)
			}
			e.collector.Groups = groups
			if e.collector.Server, err = g.Server(); err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), nil, func(ctx context.Context) error { return e.run(ctx, cmd.OutOrStdout()) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.address, "listen", "127.0.0.1:9797", "address to serve at; all who reach it can read the figures")
	f.DurationVar(&e.every, "every", 15*time.Second, "the least time between the beginnings of two looks")
	f.StringArrayVar(&e.match, "match", nil, "GROUP=PATTERN: count these locks as a group; may be repeated")
	return cmd
}

// run serves, and looks, until ctx ends.
func (e *exporter) run(ctx context.Context, out io.Writer) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %s", e.address, connect.Reason(err))
	}
	e.current.every = e.every
	srv := &http.Server{Handler: e.current.handler(), ReadHeaderTimeout: headerTime}
	served := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		err := srv.Serve(l)
		cancel(err)
		served <- err
	}()
	fmt.Fprintf(out, "http://%s/metrics\n", l.Addr())
	e.look(ctx)
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer stop()
	if srv.Shutdown(end) != nil {
		_ = srv.Close() // what is left did not end in time
	}
	if err := <-served; err != http.ErrServerClosed { //nolint:errorlint // Serve returns it as it is
		return err
	}
	return nil
}

// look looks again and again, until ctx ends.
func (e *exporter) look(ctx context.Context) {
	if master, err := e.collector.Server.Master(ctx); err == nil && master != "" {
		e.say("warning: %s", e.collector.Server.OfReplica(master))
	}
	for {
		began := time.Now()
		figures, notCounted, err := e.collector.Look(ctx)
		if ctx.Err() != nil {
			return
		}
		e.current.take(figures, notCounted == nil, err)
		e.report(notCounted, err)
		took := time.Since(began)
		if inspect.Pause(ctx, max(e.every-took, listing.PauseFactor*took)) != nil {
			return
		}
	}
}

// report prints what is wrong, once for each problem.
func (e *exporter) report(notCounted, err error) {
	text := ""
	switch {
	case err != nil:
		text = err.Error()
	case notCounted != nil:
		text = "redlatch_server_waiters_dead is left out: subscribers cannot be counted: " + inspect.NotCounted(notCounted)
	case e.said != "":
		text = "all is well again"
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
