package all

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func newServe(*cli.Globals) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start an in-memory server for development",
		Long: `Starts an in-memory server with the Redis protocol and runs until interrupted.
It is for development only: it is slow, has no password, and starts empty.

Exit codes:
  1      the server could not be started
  2      the command line is invalid
  128+n  signal n ended the command: 130 SIGINT (Ctrl-C), 143 SIGTERM`,
		Example: `  redlatch serve
  redlatch serve --addr 127.0.0.1:0      # a free port; the URL is printed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(addr); err != nil && addr != "" {
				return cli.Usagef("--addr must be host:port, such as 127.0.0.1:0 for a free port")
			}
			return cli.UntilSignal(cmd.Context(), func(ctx context.Context) error { return serve(ctx, addr, cmd.OutOrStdout()) })
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:6379", "address to listen on")
	return cmd
}

func serve(ctx context.Context, addr string, out io.Writer) error {
	srv, err := embedded.Start(embedded.WithAddr(addr))
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %s", addr, connect.Reason(err))
	}
	defer srv.Close()
	fmt.Fprintln(out, srv.URL())
	cli.Messagef(os.Stderr, "in-memory server, for development only; press Ctrl-C to stop")
	if at, err := netip.ParseAddrPort(srv.Addr()); err == nil && !at.Addr().Unmap().IsLoopback() {
		cli.Messagef(os.Stderr, "warning: other machines can reach this server, which has no password")
	}
	<-ctx.Done()
	return nil
}
