package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// The bounds of --duration.
const (
	leastBench = time.Second
	mostBench  = time.Minute
)

const benchHelp = `Loads a server with locks for a few seconds, from this machine alone, and shows
how fast it is:

  round trip   how long a PING takes
  pairs        locks taken and freed a second, by one caller and by 64 that do
               not contend
  hand-overs   how often a second one lock goes from one client to another,
               which are two here, with 4 callers each
  wake-ups     from the beginning of an unlock until a waiter of another client
               has the lock

Compare with the same command elsewhere, not with figures of other programs. A
server on this machine shares it with the callers. All keys are of the run's
own, below --prefix, and are gone at its end. It asks before it loads a server
on another machine, unless --yes is given.

Exit codes:
  0      it was measured
  1      it was not
  2      the server is a replica, which gives no locks, or the command line or
         the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

// benchmark is the output of bench.
type benchmark struct {
	Server string `json:"server"`
	// Seconds is how long it took, or was meant to.
	Seconds float64 `json:"seconds"`
	*result
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	var prefix string
	var asJSON, yes bool
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast locks are on a server",
		Long:  benchHelp,
		Example: `  redlatch bench
  redlatch bench --duration 20s --redis redis://redis.example --yes
  redlatch bench --json | jq .wake_up.p99_us`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if duration < leastBench || duration > mostBench {
				return cli.Usagef("--duration must be from %v to %v", leastBench, mostBench)
			}
			srv, err := g.Server()
			if err != nil {
				return err
			}
			if err := mayLoad(cmd.Context(), srv, yes); err != nil {
				return err
			}
			if err := cli.NeedMaster(cmd.Context(), srv); err != nil {
				return err
			}
			var res *result
			err = cli.UntilSignal(cmd.Context(), cli.ErrInterrupted, func(ctx context.Context) (err error) {
				res, err = measure(ctx, srv, prefix, duration)
				return err
			})
			if err != nil {
				return err
			}
			b := &benchmark{Server: srv.String(), Seconds: duration.Seconds(), result: res}
			if asJSON {
				return cli.PrintJSON(cmd, b)
			}
			b.print(cmd.OutOrStdout())
			return nil
		},
	}
	f := cmd.Flags()
	f.DurationVar(&duration, "duration", 5*time.Second, "for how long, from 1s to 1m")
	f.StringVar(&prefix, "prefix", "", "what the names of the locks begin with")
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// mayLoad asks whether servers on other machines may be loaded.
func mayLoad(ctx context.Context, srv *connect.Server, yes bool) error {
	if yes {
		return nil
	}
	masters, err := srv.Masters(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(masters, func(s *connect.Server) bool { return !isHere(s.Host()) }) {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return cli.Errorf(1, "%s is on another machine: --yes loads it all the same", srv)
	}
	if !cli.Confirm(os.Stdin, os.Stderr, fmt.Sprintf("Load %s, which is on another machine?", srv)) {
		return cli.Errorf(1, "%s was not loaded", srv)
	}
	return nil
}

// isHere reports whether a host is this machine.
func isHere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}

// print writes the text output.
func (b *benchmark) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %v\n", b.Server, time.Duration(b.Seconds*float64(time.Second)))
	fmt.Fprintf(w, "  round trip  p50 %s, p99 %s\n", brief(b.Trip.P50), brief(b.Trip.P99))
	fmt.Fprintf(w, "  pairs       %.0f a second by 1 caller, %.0f by %d\n", b.PairsOfOne, b.PairsOfMany, manyCallers)
	fmt.Fprintf(w, "  hand-overs  %.0f a second, of one lock among %d callers of 2 clients\n", b.HandOvers, 2*callersEach)
	fmt.Fprintf(w, "  wake-ups    p50 %s, p99 %s, of %d\n", brief(b.WakeUp.P50), brief(b.WakeUp.P99), b.WakeUp.Count)
}

// brief formats a time with three significant digits at most.
func brief(m micros) string {
	d := time.Duration(m)
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
