// Package ui is the command redlatch ui: it serves a live page for locks.
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
			srv, err := g.Server()
			if err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), func(ctx context.Context) error { return s.run(ctx, srv) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.addr, "addr", defaultAddr, "address to listen on")
	f.StringVar(&s.authFile, "auth", "", "file with lines user:password, one of which browsers must give")
	f.StringSliceVar(&s.page.Hosts, "host", nil, "name by which browsers reach the page, besides localhost")
	f.StringSliceVar(&s.allow, "allow", nil, "actions that the page has: unlock, evict (none without it; needs --auth)")
	f.DurationVar(&s.page.Every, "every", 2*time.Second, "the least time between two scans of all locks")
	cli.CompleteFiles(cmd, "auth")
	cli.CompleteValues(cmd, "allow", slices.Sorted(maps.Keys(actions))...)
	return cmd
}

func (s *server) check() error {
	host, _, err := net.SplitHostPort(s.addr)
	addr, _ := netip.ParseAddr(host) // zero for a name
	switch {
	case err != nil:
		return cli.Usagef("--addr must be host:port, such as %s", defaultAddr)
	case s.page.Every < 100*time.Millisecond:
		return cli.Usagef("--every must be at least 100ms")
	case host != "localhost" && !addr.Unmap().IsLoopback() && s.authFile == "":
		return cli.Usagef("--addr %s can be reached from other machines: give --auth FILE", s.addr)
	}
	if host != "" && !addr.IsUnspecified() {
		s.page.Hosts = append(s.page.Hosts, host)
	}
	return s.checkActions()
}

var actions = map[string]redlatchui.Access{"unlock": redlatchui.MayUnlock, "evict": redlatchui.MayEvict}

// checkActions checks --allow and grants its actions. They need a password even on this machine:
// all of its users would have this program's rights on the server, and no name in the audit.
func (s *server) checkActions() error {
	if len(s.allow) == 0 {
		return nil
	}
	granted := redlatchui.ReadOnly
	for _, what := range s.allow {
		right, is := actions[what]
		if !is {
			return cli.Usagef("--allow has unlock and evict, with a comma between them, and no %s", sanitize.Word(what))
		}
		granted |= right
	}
	if s.authFile == "" {
		return cli.Usagef("--allow needs --auth FILE: a page that changes something wants a password, also on this machine")
	}
	s.page.Access = func(*http.Request) redlatchui.Access { return granted }
	return nil
}

// run serves the page until ctx ends.
func (s *server) run(ctx context.Context, srv *connect.Server) error {
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
	defer func() { _ = client.Close() }() // after the page
	page, err := redlatchui.New(client, s.page)
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	listener, err := cli.Listen(s.addr)
	if err != nil {
		return err
	}
	_, _ = cli.WarnOfReplica(ctx, srv, s.errors) // the page shows errors
	fmt.Fprintf(s.out, "http://%s/\n", shownAddr(listener.Addr()))
	kind := "read-only page"
	if len(s.allow) > 0 {
		kind = "page that may " + strings.Join(s.allow, " and ")
	}
	cli.Messagef(s.errors, "%s of the locks at %s; Ctrl-C ends it", kind, srv)
	return cli.Serve(ctx, listener, users.protect(page, s.errors), func() { _ = page.Close() })
}

func shownAddr(addr net.Addr) string {
	tcp, is := addr.(*net.TCPAddr)
	if is && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}

// audit logs the beginning and the outcome of an action.
func (s *server) audit(_ context.Context, a redlatchui.Attempt) error {
	owners := make([]string, len(a.Owners))
	for i, owner := range a.Owners {
		owners[i] = sanitize.Word(owner)
	}
	said := a.Outcome
	if a.Detail != "" {
		said += ": " + sanitize.Message(a.Detail)
	}
	cli.Messagef(s.errors, "audit: %s %s from %s: %s of lock %q from %s; reason %q; %s", time.Now().UTC().Format(time.RFC3339), sanitize.Word(a.User),
		sanitize.Word(a.Remote), a.Action, a.Lock, strings.Join(owners, ", "), a.Reason, said)
	return nil
}

const uiHelp = `Serves a page that shows the locks whose names match PATTERN, or all, and
prints its address: which clients hold them and since when, which wait, and in
one sentence why a lock does not change hands. It follows changes as they
happen. Without JavaScript it loads itself again. It changes nothing, unless
--allow gives it actions: unlock takes a lock away from holders that are dead,
as redlatch unlock --force --dead does, and evict takes a dead waiter out of a
queue. Each wants a reason and costs a line on standard error before it is
done, and one after. A holder that renews its lease keeps the lock.

Only this machine can reach it, unless --addr says otherwise. Then it needs
--auth, a file with a line user:password for each user, as --allow does
everywhere. It speaks no TLS: put a proxy in front, and name the host that
browsers use with --host. Requests for another host, and those that pages of
other sites make, are refused. An address may give ten wrong passwords, then
one each 30 seconds, and each is a line on standard error.

The server gets the commands of one viewer however many there are, and none
without viewers. A --user that may only read makes sure that nothing can be
changed.

Exit codes:
  1      it could not be started
  2      the command line or the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const uiExamples = `  redlatch ui
  redlatch ui 'orders:*'
  redlatch ui --addr 127.0.0.1:0         # a free port; the address is printed
  redlatch ui --allow unlock,evict --auth ui.auth
  redlatch ui --addr :8374 --auth ui.auth --host locks.example.com`
