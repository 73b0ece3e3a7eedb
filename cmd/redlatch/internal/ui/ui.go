// Package ui implements the redlatch ui command, which serves a live web page about locks.
package ui

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui"
)

const defaultAddr = "127.0.0.1:8374"

type server struct {
	addr     string
	authFile string
	allow    []string
	page     redlatchui.Options
	out      io.Writer
	errors   io.Writer
}

// New returns the command ui.
func New(g *cli.Globals) *cobra.Command {
	s := &server{}
	cmd := &cobra.Command{
		Use:     "ui [PATTERN]",
		Short:   "Serve a live page for locks and queues",
		Long:    uiHelp,
		Example: uiExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.out, s.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if len(args) > 0 {
				s.page.Pattern = args[0]
			}
			if err := s.check(); err != nil {
				return err
			}
			srv, err := g.Server(cmd.Context())
			if err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), func(ctx context.Context) error { return s.run(ctx, srv) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.addr, "addr", defaultAddr, "address to listen on")
	f.StringVar(&s.authFile, "auth", "", "file with user:password lines")
	f.StringSliceVar(&s.page.Hosts, "host", nil, "additional host name of the page, next to localhost")
	f.StringSliceVar(&s.allow, "allow", nil, "actions to offer: unlock, evict (default: none; requires --auth)")
	f.DurationVar(&s.page.Every, "every", 2*time.Second, "minimum time between two scans of all locks")
	cli.CompleteFiles(cmd, "auth")
	cli.CompleteValues(cmd, "allow", slices.Sorted(maps.Keys(actions))...)
	return cmd
}

func (s *server) check() error {
	host, _, err := net.SplitHostPort(s.addr)
	addr, _ := netip.ParseAddr(host) // the zero Addr if host is a name
	switch {
	case err != nil:
		return cli.Usagef("--addr must be host:port, such as %s", defaultAddr)
	case s.page.Every < 100*time.Millisecond:
		return cli.Usagef("--every must be at least 100ms")
	case host != "localhost" && !addr.Unmap().IsLoopback() && s.authFile == "":
		return cli.Usagef("--addr %s is reachable from other machines: --auth FILE is required", s.addr)
	}
	if host != "" && !addr.IsUnspecified() {
		s.page.Hosts = append(s.page.Hosts, host)
	}
	return s.checkActions()
}

var actions = map[string]redlatchui.Access{"unlock": redlatchui.MayUnlock, "evict": redlatchui.MayEvict}

// checkActions requires a password even on this machine, because its users would get this program's rights.
func (s *server) checkActions() error {
	if len(s.allow) == 0 {
		return nil
	}
	granted := redlatchui.ReadOnly
	for _, what := range s.allow {
		right, is := actions[what]
		if !is {
			return cli.Usagef("invalid action %s in --allow: must be unlock, evict or unlock,evict", sanitize.Word(what))
		}
		granted |= right
	}
	if s.authFile == "" {
		return cli.Usagef("--allow requires --auth FILE: a page with actions needs a password, even on this machine")
	}
	s.page.Access = func(*http.Request) redlatchui.Access { return granted }
	return nil
}

func (s *server) run(ctx context.Context, srv *connect.Server) error {
	cli.CollectOften()
	users, err := readAuth(s.authFile)
	if err != nil {
		return err
	}
	s.page.Audit, s.page.User = s.audit, func(r *http.Request) string {
		user, _, _ := r.BasicAuth()
		return user
	}
	client, err := cli.Client(ctx, srv)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // closed after the page
	page, err := redlatchui.New(client, s.page)
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	listener, err := cli.Listen(s.addr)
	if err != nil {
		return err
	}
	_, _ = cli.WarnOfReplica(ctx, srv, s.errors) // the page also shows the error
	fmt.Fprintf(s.out, "http://%s/\n", shownAddr(listener.Addr()))
	kind, actions := "read-only page", ""
	if len(s.allow) > 0 {
		kind, actions = "page", ", with the actions "+strings.Join(s.allow, ", ")
	}
	cli.Messagef(s.errors, "%s of the locks at %s%s; press Ctrl-C to stop", kind, srv, actions)
	return cli.Serve(ctx, listener, users.protect(page, s.errors), func() { _ = page.Close() })
}

func shownAddr(addr net.Addr) string {
	tcp, is := addr.(*net.TCPAddr)
	if is && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}

func (s *server) audit(_ context.Context, a redlatchui.Attempt) error {
	owners := make([]string, len(a.Owners))
	for i, owner := range a.Owners {
		owners[i] = sanitize.Word(owner)
	}
	from := ""
	if len(owners) > 0 { // those of evict-all-dead are not known before
		from = " from " + strings.Join(owners, ", ")
	}
	said := a.Outcome
	if a.Detail != "" {
		said += ": " + sanitize.Message(a.Detail)
	}
	cli.Messagef(s.errors, "audit: %s %s from %s: %s of lock %q%s; reason %q; %s", time.Now().UTC().Format(time.RFC3339), sanitize.Word(a.User),
		sanitize.Word(a.Remote), a.Action, a.Lock, from, a.Reason, said)
	return nil
}

const uiHelp = `Serves a live page about the locks whose names match PATTERN, or all locks, and
prints its address. The page shows which clients hold each lock and since when,
which clients wait, and why a lock does not change hands. Without JavaScript,
the page reloads periodically. It is read-only unless --allow enables actions:
unlock releases the locks of dead holders, like redlatch unlock --force --dead,
and evict removes one or all dead waiters of a queue. Each action requires a
reason and writes a line to standard error before and after it. A holder that
renews its lease keeps the lock.

By default, the page is reachable only from this machine. For other addresses,
--addr requires --auth, a file with a user:password line per user. --allow
always requires it. The page does not use TLS: put a proxy in front of it, and
give the host that browsers use with --host. Requests for other hosts and
requests from pages of other sites are rejected. Each address may enter ten
wrong passwords, then one every 30 seconds; each writes a line to standard
error.

All viewers together cost the server as much as one, and without viewers the
page sends no commands. To rule out changes, use a --user with read-only
rights.

Exit codes:
  1      the page could not be started
  2      the command line or the address is invalid
  128+n  signal n ended the command: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const uiExamples = `  redlatch ui
  redlatch ui 'orders:*'
  redlatch ui --addr 127.0.0.1:0         # a free port; the address is printed
  redlatch ui --allow unlock,evict --auth ui.auth
  redlatch ui --addr :8374 --auth ui.auth --host locks.example.com`
