//go:build unix

package hold

import (
	"context"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// background holds the lock of hold -s, in a separate process.
func (o *holdFlags) background(cmd *cobra.Command, args []string) error {
	_ = os.Unsetenv("NOTIFY_SOCKET") // another process is the service's main process
	ended, stop := endings()
	defer stop()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	printed := make(chan bool, 1)
	go func() {
		var word [1]byte
		n, _ := os.Stdin.Read(word[:]) // the end of the pipe means no
		if n != 1 || word[0] != taken {
			cancel()
		}
		printed <- n == 1 && word[0] == taken
	}()
	h, err := o.begin(ctx, o.name(args), ended)
	if err != nil {
		return err
	}
	defer h.disconnect()
	server, err := listen(h.owner())
	if err != nil {
		_ = h.hold.Unlock() // the lease frees it at worst
		return &cli.ExitError{Code: cli.CodeRunFailed, Err: err}
	}
	defer server.close()
	if !report(h, server, printed) {
		_ = h.hold.Unlock() // the lease frees it at worst
		return cli.Errorf(cli.CodeRunFailed, "the assignments of lock %q were not read", h.lock.Name())
	}
	return h.serve(cmd.Context(), server, ended)
}

// report prints the assignments, and closes standard input and outputs when they have been read. It
// reports whether they were.
func report(h *held, server *socket, printed <-chan bool) bool {
	env := append(h.environment(), envHold+"="+server.path(), envPID+"="+strconv.Itoa(os.Getpid()))
	if _, err := os.Stdout.WriteString(assignments(env)); err != nil {
		return false
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = null.Close() }()
	if redirect(null, os.Stdout) != nil || !<-printed {
		return false
	}
	return redirect(null, os.Stdin) == nil && redirect(null, os.Stderr) == nil
}

// serve holds the lock until a release, a signal or the end of the watched process. After a loss it
// stays to report the loss to redlatch release.
func (h *held) serve(ctx context.Context, server *socket, ended <-chan os.Signal) error {
	a, lost := answer{}, h.lost.Done()
	for {
		select {
		case <-lost:
			a, lost = h.loss(ctx), nil
			continue
		case request := <-server.requests:
			if lost != nil {
				a = h.release(ctx)
			}
			request.answer(a)
			return a.exit()
		case <-ended:
		case <-h.watched.ended():
		}
		if lost != nil {
			a = h.release(ctx)
		}
		return a.exit()
	}
}

// redirect makes one descriptor a copy of another: the runtime writes to standard error by its
// number.
func redirect(to, of *os.File) error { return unix.Dup2(int(to.Fd()), int(of.Fd())) }
