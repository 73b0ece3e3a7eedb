// Package top contains the command redlatch top, which shows live locks on a terminal. The terminal view itself is in
// the module cmd/redlatch/full, so that the library does not depend on its dependencies.
package top

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Options configure a Screen.
type Options struct {
	Board *board.Board
	// Place is the address of the server. Pattern selects locks; "" selects all. Note is a warning, or "".
	Place, Pattern, Note string
}

// Screen shows locks on the terminal until the user quits or ctx ends.
type Screen func(ctx context.Context, o Options) error

// New returns the constructor of the command top. A nil screen means that the program has no terminal view.
func New(show Screen) cli.Constructor {
	return func(g *cli.Globals) *cobra.Command {
		var every time.Duration
		cmd := &cobra.Command{
			Use:     "top [PATTERN]",
			Short:   "Show live locks on the terminal",
			Long:    topHelp,
			Example: topExamples,
			Args:    cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				pattern := ""
				if len(args) > 0 {
					pattern = args[0]
				}
				if every < board.LeastEvery {
					return cli.Usagef("--every must be at least %s", board.LeastEvery)
				}
				srv, err := g.Server(cmd.Context())
				if err != nil {
					return err
				}
				if !isTerminal(os.Stdin) || !isTerminal(os.Stdout) || os.Getenv("TERM") == "dumb" {
					return cli.Usagef("top needs a terminal, and TERM other than dumb; scripts can use redlatch list --json or redlatch watch --json")
				}
				if show == nil {
					return cli.Errorf(cli.CodeFailed, "this program was built without top; the releases' archives and packages have it. "+
						"In a clone, cd cmd/redlatch/full && go build builds one that has it")
				}
				return cli.UntilSignal(cmd.Context(), func(ctx context.Context) error {
					return run(ctx, srv, show, Options{Place: sanitize.Message(g.Named()), Pattern: pattern}, every)
				}, syscall.SIGHUP)
			},
		}
		cmd.Flags().DurationVar(&every, "every", 2*time.Second, "minimum time between two scans of all locks")
		return cmd
	}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func run(ctx context.Context, srv *connect.Server, show Screen, o Options, every time.Duration) error {
	client, err := cli.Client(ctx, srv)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // after the board
	source, err := board.FromClient(client)
	if err != nil {
		return err
	}
	o.Board = board.New(source, o.Pattern, every)
	defer func() { _ = o.Board.Close() }()
	if master, err := srv.Master(ctx); err == nil && master != "" {
		o.Note = sanitize.Message(srv.OfReplica(master))
	}
	cli.CollectOften()
	return show(ctx, o)
}

// Legend explains the columns and the keys.
const Legend = `  NAME    the lock; ! marks trouble: a deadlock, a dead waiter in front, two
          kinds of lock under one name, no lease, or free with a queue
  HELD    how long the lock has been held; > if longer than was seen
  WAIT    number of queued owners, or of connections waiting without a queue
  LEASE   when the lock expires if it is not renewed; permits have their own
  HOLDER  the label of the client, or its kind and the end of its ID; (2) if
          there are two

  up, down, page up, page down, home, end   move
  enter     show one lock: holders, queue, and why it does not change hands
  esc       back; clear the filter
  f, /      filter by a part of the name, or by a pattern with * and ?
  s         sort by the next column
  1 to 6    sort by trouble, name, held, wait, lease or holder
  ctrl-L    redraw
  ctrl-Z    suspend
  ?         help
  q         quit`

const topHelp = `Shows the locks whose names match PATTERN, or all locks, and keeps the view up
to date. It changes nothing on the server.

` + Legend + `

A scan reads all locks. The next one begins after --every, or after four times
as long as it took if that is longer. A few seconds after one lock is shown,
only that lock is read, once a second. With more than 20,000 locks, top keeps
the first 20,000 in the chosen order. If the server does not answer, top shows
the last data and its age until it does.

A deadlock or a dead waiter in front is red, other trouble is magenta. Colors
follow the terminal's palette; NO_COLOR turns them off.

The program that go install builds does not have this view. The releases'
archives and packages do.

Exit codes:
  0      the user quit
  1      the server could not be reached, or the program has no terminal view
  2      the command line or the address is invalid, standard input or output
         is not a terminal, or TERM is dumb
  128+n  signal n ended the command: 129 SIGHUP (the terminal was closed),
         130 SIGINT (Ctrl-C), 143 SIGTERM`

const topExamples = `  redlatch top
  redlatch top 'orders:*'
  redlatch top --every 10s`
