// Package hold is the command redlatch hold: it holds a lock for a shell script.
//
//	hold.New ─▶ Acquire ─▶ the owner is printed ─▶ await ─▶ end ─▶ exit code
//	   └─ -s ─▶ detach ─▶ hold.NewDetached, in the background: the same, and redlatch release
//
// Package holding takes the lock and gives it up, package process watches the shell, and package
// control has the socket for redlatch release.
package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/holding"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/process"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/internal/tool/sdnotify"
)

// options are the flags of hold.
type options struct {
	holding.Options

	shell        bool
	forPID       int
	onLostSignal string
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	o := &options{Options: holding.Options{Globals: g}}
	cmd := o.command(o.foreground)
	cmd.Use = "hold [-s] {NAME | --permits NAME:N}"
	cmd.Short = "Hold a lock for a shell script"
	cmd.Long = help
	cmd.Example = examples
	return cmd
}

// NewDetached returns the hidden command that -s leaves in the background.
func NewDetached(g *cli.Globals) *cobra.Command {
	o := &options{Options: holding.Options{Globals: g}}
	cmd := o.command(o.background)
	cmd.Use = detachedCommand
	cmd.Hidden = true
	return cmd
}

// detachedCommand is the name of the hidden command.
const detachedCommand = "__hold"

// command makes a command with the flags of hold.
func (o *options) command(do func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if why := wrongArgs(cmd, args); why != "" {
				return refuse(cmd, fmt.Errorf("%s. Usage: redlatch %s; `redlatch hold --help` tells more", why, cmd.Use))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return refuse(cmd, err)
			}
			return do(cmd, args)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return refuse(cmd, cli.WrongFlag(cmd, err)) })
	o.register(cmd)
	return cmd
}

// wrongArgs says what is wrong with the arguments, "" for nothing.
func wrongArgs(cmd *cobra.Command, args []string) string {
	names := 1
	if cmd.Flags().Changed("permits") {
		names = 0
	}
	switch {
	case len(args) < names:
		return "NAME is missing"
	case len(args) > 0 && names == 0:
		return "--permits NAME:N stands in place of NAME: leave " + sanitize.Word(args[0]) + " out"
	case len(args) > names:
		return "there are too many arguments: " + sanitize.Word(args[names])
	}
	return ""
}

// register adds the flags. Those of run that speak of its command say what they mean here.
func (o *options) register(cmd *cobra.Command) {
	f := cmd.Flags()
	o.Register(f)
	for name, usage := range map[string]string{
		"fenced":   "take the lock with a fencing token, as with getFencedLock in Java: it is the second line, or in REDLATCH_TOKEN",
		"permits":  "in place of a lock, take one of the N permits of the semaphore NAME, as with getPermitExpirableSemaphore in Java",
		"lease":    "hold the lock for this long at most: it is lost before that is over",
		"max-hold": "free the lock when it was held for this long, however well the lease is renewed, and exit as after a loss",
		"at-least": "leave the lock for this long from when it was acquired, also when it is released sooner",
	} {
		f.Lookup(name).Usage = usage
	}
	f.BoolVarP(&o.shell, "shell", "s", false, "hold in the background, and print shell assignments for eval")
	f.IntVar(&o.forPID, "for-pid", 0, "free the lock when the process with this number has ended (with -s: the parent process)")
	f.StringVar(&o.onLostSignal, "on-lost-signal", "", "send this signal to the process of --for-pid when the lock is lost: TERM, INT, HUP, USR1, USR2 or KILL")
	cli.CompleteValues(cmd, "on-lost-signal", signalNames...)
}

// check refuses flags that make no sense.
func (o *options) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if err := o.Check(changed); err != nil {
		return err
	}
	switch {
	case changed("for-pid") && o.forPID < 1:
		return cli.Errorf(holding.CodeFailed, "--for-pid must be the number of a process, such as $$")
	case changed("on-lost-signal") && signals[o.onLostSignal] == 0:
		return cli.Errorf(holding.CodeFailed, "--on-lost-signal must be TERM, INT, HUP, USR1, USR2 or KILL, as far as this system has it")
	case o.shell && o.Conflict == 0:
		return cli.Errorf(holding.CodeFailed, "-s and --conflict-exit-code 0 contradict each other: eval would succeed, and the script go on without the lock")
	case changed("on-lost-signal") && o.forPID == 0 && !o.shell:
		return cli.Errorf(holding.CodeFailed, "--on-lost-signal needs --for-pid")
	}
	return nil
}

// foreground holds the lock, or starts the process that does.
func (o *options) foreground(cmd *cobra.Command, args []string) error {
	if o.shell {
		return o.detach(cmd)
	}
	ended, stop := endings()
	defer stop()
	h, err := o.begin(cmd.Context(), o.Name(args), ended)
	if err != nil {
		return err
	}
	defer h.close()
	text := h.Owner() + "\n"
	if token := h.Token(); token != "" {
		text += token + "\n"
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
		_ = h.Hold.Unlock() // its lease frees it at worst
		return cli.Errorf(holding.CodeFailed, "the owner could not be printed: %w", err)
	}
	sdnotify.Send(sdnotify.Ready, sdnotify.Status("holds lock "+sanitize.Word(h.name)+" since "+h.Since.UTC().Format(time.RFC3339)))
	var a answer
	select {
	case <-h.lost.Done():
		a = h.loss(cmd.Context())
		sdnotify.Send(sdnotify.Stopping, sdnotify.Status(a.Text))
	case <-ended:
		sdnotify.Send(sdnotify.Stopping)
		a = h.release(cmd.Context())
	case <-h.watched.Done():
		sdnotify.Send(sdnotify.Stopping)
		a = h.release(cmd.Context())
	}
	return a.exit()
}

// endings returns the signals that end a hold. One that is ignored, as under nohup, stays ignored.
// Without a reader of its output this process goes on: it has a lock to free.
func endings() (<-chan os.Signal, func()) {
	signal.Ignore(syscall.SIGPIPE)
	ch := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}

// held is a lock that is held, and what it is held for.
type held struct {
	*holding.Held

	o       *options
	name    string
	watched *process.Process // nil when the lock is held for no process
	lost    context.Context  // ends with the hold
}

// errEnded is why a wait was given up.
var errEnded = errors.New("it is not needed any more")

// begin takes the lock. A signal, and the end of the process that it is for, end the waiting.
func (o *options) begin(ctx context.Context, name string, ended <-chan os.Signal) (*held, error) {
	var watched *process.Process
	if o.forPID != 0 {
		var err error
		if watched, err = process.Open(o.forPID); err != nil {
			return nil, cli.Errorf(holding.CodeFailed, "--for-pid: %w", err)
		}
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-watched.Done():
			cancel(errEnded)
		case <-waiting.Done():
		}
	}()
	sdnotify.Send(sdnotify.Status("waits for lock " + sanitize.Word(name)))
	got, err := o.Acquire(waiting, name, ended)
	if err != nil {
		unneeded := errors.Is(context.Cause(waiting), errEnded)
		watched.Close()
		if unneeded {
			return nil, cli.Errorf(holding.CodeFailed, "lock %q is not waited for any more: process %d has ended", name, o.forPID)
		}
		return nil, err
	}
	return &held{Held: got, o: o, name: name, watched: watched, lost: got.Hold.Context(ctx)}, nil
}

func (h *held) close() {
	h.watched.Close()
	h.Close()
}

// loss signals the process that the lock was held for, and tells why the lock was lost. A hold that
// --max-hold has ended is still to be freed.
func (h *held) loss(ctx context.Context) answer {
	over, failed := h.Hold.Err(), error(nil)
	if h.o.onLostSignal != "" {
		failed = h.watched.Signal(int(signals[h.o.onLostSignal]))
	}
	a := h.outcome(over, h.o.GiveUp(ctx, h.Held, nil))
	if failed != nil && !errors.Is(failed, process.ErrNone) && !errors.Is(failed, os.ErrProcessDone) && !errors.Is(failed, syscall.ESRCH) {
		a.Text += fmt.Sprintf("; process %d could not be signalled: %v", h.watched.PID, failed)
	}
	return a
}

// release gives the lock up.
func (h *held) release(ctx context.Context) answer {
	return h.outcome(h.Hold.Err(), h.o.GiveUp(ctx, h.Held, nil))
}

// exit prints what is to be told, and makes the exit code.
func (a answer) exit() error {
	switch {
	case a.Code != 0:
		return cli.Errorf(a.Code, "%s", a.Text)
	case a.Text != "":
		output.Messagef(os.Stderr, "%s", sanitize.Message(a.Text))
	}
	return nil
}
