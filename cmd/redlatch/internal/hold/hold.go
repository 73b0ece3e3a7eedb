// Package hold has the commands that hold a lock: run for a command, hold for a shell script, and
// release, which ends what hold -s has left in the background.
//
//	run:   acquire ─▶ runner.Start ─▶ runner.Supervise ─▶ giveUp ─▶ exit code
//	hold:  acquire ─▶ the owner is printed ─▶ a signal, a loss or the end of a process ─▶ giveUp
//	 └ -s: detach ─▶ background, another process: the same, and the socket for release
//
// lockFlags are the flags that run and hold share. Package runner has the processes of run, and
// the guard that kills them with redlatch.
package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// detachedCommand is the name of the hidden command that -s leaves in the background.
const detachedCommand = "__hold"

// holdFlags are the flags of hold.
type holdFlags struct {
	lockFlags

	shell        bool
	forPID       int
	onLostSignal string
}

// New returns the command hold.
func New(g *cli.Globals) *cobra.Command {
	o := &holdFlags{lockFlags: lockFlags{Globals: g}}
	cmd := o.command(o.foreground)
	cmd.Use = "hold [-s] {NAME | --permits NAME:N}"
	cmd.Short = "Hold a lock for a shell script"
	cmd.Long = holdHelp
	cmd.Example = holdExamples
	return cmd
}

// NewDetached returns the hidden command that -s leaves in the background.
func NewDetached(g *cli.Globals) *cobra.Command {
	o := &holdFlags{lockFlags: lockFlags{Globals: g}}
	cmd := o.command(o.background)
	cmd.Use = detachedCommand
	cmd.Hidden = true
	return cmd
}

// command makes a command with the flags of hold.
func (o *holdFlags) command(do func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			n, why := names(cmd, args)
			switch {
			case why == "" && len(args) < n:
				why = "NAME is missing"
			case why == "" && len(args) > n:
				why = "there are too many arguments: " + sanitize.Word(args[n])
			}
			if why != "" {
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
	f := cmd.Flags()
	o.register(f, false)
	f.BoolVarP(&o.shell, "shell", "s", false, "hold in the background, and print shell assignments for eval")
	f.IntVar(&o.forPID, "for-pid", 0, "free the lock when the process with this number has ended (with -s: the parent process)")
	f.StringVar(&o.onLostSignal, "on-lost-signal", "", "send this signal to the process of --for-pid when the lock is lost: TERM, INT, HUP, USR1, USR2 or KILL")
	cli.CompleteValues(cmd, "on-lost-signal", "TERM", "INT", "HUP", "USR1", "USR2", "KILL")
	return cmd
}

// check refuses flags that make no sense.
func (o *holdFlags) check(cmd *cobra.Command) error {
	if err := o.lockFlags.check(cmd); err != nil {
		return err
	}
	changed := cmd.Flags().Changed
	switch {
	case changed("for-pid") && o.forPID < 1:
		return cli.Errorf(cli.CodeRunFailed, "--for-pid must be the number of a process, such as $$")
	case changed("on-lost-signal") && signals[o.onLostSignal] == 0:
		return cli.Errorf(cli.CodeRunFailed, "--on-lost-signal must be TERM, INT, HUP, USR1, USR2 or KILL, as far as this system has it")
	case o.shell && o.conflict == 0:
		return cli.Errorf(cli.CodeRunFailed, "-s and --conflict-exit-code 0 contradict each other: eval would succeed, and the script go on without the lock")
	case changed("on-lost-signal") && o.forPID == 0 && !o.shell:
		return cli.Errorf(cli.CodeRunFailed, "--on-lost-signal needs --for-pid")
	}
	return nil
}

// foreground holds the lock, or starts the process that does.
func (o *holdFlags) foreground(cmd *cobra.Command, args []string) error {
	if o.shell {
		return o.detach(cmd)
	}
	ended, stop := endings()
	defer stop()
	h, err := o.begin(cmd.Context(), o.name(args), ended)
	if err != nil {
		return err
	}
	defer h.disconnect()
	text := h.owner() + "\n"
	if token := h.token(); token != "" {
		text += token + "\n"
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
		_ = h.hold.Unlock() // its lease frees it at worst
		return cli.Errorf(cli.CodeRunFailed, "the owner could not be printed: %w", err)
	}
	notify(notifyReady, h.status())
	select {
	case <-h.lost.Done():
		a := h.loss(cmd.Context())
		notify(notifyStopping, notifyStatus(a.Text))
		return a.exit()
	case <-ended:
	case <-h.watched.ended():
	}
	notify(notifyStopping)
	return h.release(cmd.Context()).exit()
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
	*acquired

	o       *holdFlags
	watched *watched        // nil when the lock is held for no process
	lost    context.Context // ends with the hold
}

// errNotNeeded is why a wait was given up.
var errNotNeeded = errors.New("it is no longer needed")

// begin takes the lock. A signal, and the end of the process that it is for, end the waiting.
func (o *holdFlags) begin(ctx context.Context, name string, ended <-chan os.Signal) (*held, error) {
	var w *watched
	if o.forPID != 0 {
		var err error
		if w, err = watch(o.forPID); err != nil {
			return nil, cli.Errorf(cli.CodeRunFailed, "--for-pid: %w", err)
		}
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-w.ended():
			cancel(errNotNeeded)
		case <-waiting.Done():
		}
	}()
	notify(notifyStatus("waits for lock " + sanitize.Word(name)))
	got, err := o.acquire(waiting, name, ended)
	switch {
	case err == nil:
		return &held{acquired: got, o: o, watched: w, lost: got.hold.Context(ctx)}, nil
	case errors.Is(context.Cause(waiting), errNotNeeded):
		return nil, cli.Errorf(cli.CodeRunFailed, "lock %q is not waited for any more: process %d has ended", name, o.forPID)
	}
	return nil, err
}

// loss signals the process that the lock was held for, and tells why the lock was lost. A hold that
// --max-hold has ended is still to be freed.
func (h *held) loss(ctx context.Context) answer {
	over, failed := h.hold.Err(), error(nil)
	if h.o.onLostSignal != "" {
		failed = h.watched.signal(signals[h.o.onLostSignal])
	}
	a := h.outcome(over, h.o.giveUp(ctx, h.acquired, nil))
	if failed != nil {
		a.Text += "; " + failed.Error()
	}
	return a
}

// release gives the lock up.
func (h *held) release(ctx context.Context) answer {
	return h.outcome(h.hold.Err(), h.o.giveUp(ctx, h.acquired, nil))
}

// answer is what became of a hold.
type answer struct {
	// Code is the exit code for that.
	Code int `json:"code"`
	// Text tells of it, "" where all went well.
	Text string `json:"text,omitempty"`
}

// outcome tells how a hold ended, by its error, nil for one that was not lost, and by that of
// giving it up.
func (h *held) outcome(over, unlocked error) answer {
	name := h.lock.Name()
	switch {
	case errors.Is(over, redlatch.ErrMaxHold):
		return answer{cli.CodeRunFailed, fmt.Sprintf("lock %q was held for %v, which is the most by --max-hold: it was freed", name, h.o.maxHold)}
	case over != nil || errors.Is(unlocked, redlatch.ErrLost):
		return answer{cli.CodeRunFailed, fmt.Sprintf("lock %q was lost: %s", name, h.o.lossOf(over, unlocked))}
	}
	return answer{0, h.o.notFreed(name, unlocked)}
}

// exit prints what is to be told, and makes the exit code.
func (a answer) exit() error {
	switch {
	case a.Code != 0:
		return cli.Errorf(a.Code, "%s", a.Text)
	case a.Text != "":
		cli.Messagef(os.Stderr, "%s", sanitize.Message(a.Text))
	}
	return nil
}
