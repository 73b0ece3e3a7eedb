// Package hold contains the commands that hold a lock: run, hold, and release, which ends the hold
// of a background process that hold -s has started.
//
// # Processes of run
//
//	redlatch ──pipe, held by redlatch alone──▶ guard ┐
//	    └────────────────────────────────────▶ command ┤ one process group
//	                                             └ its children ┘
//
// On Unix, the command runs in a separate process group. The leader of the group is the guard, a
// second redlatch process. If its pipe ends without the orderlyExit byte, the guard kills the group
// with SIGKILL. On Linux, the kernel also kills the command (PR_SET_PDEATHSIG) when the thread that
// started it exits, so this thread lives as long as the command. On Windows, only the command
// itself is killed after a loss.
//
// A hold ends one loss margin before its lease does. At that time, run sends SIGTERM to the group.
// It sends SIGKILL before the server can grant the lock to another owner.
//
// If redlatch is the foreground job of the terminal on its standard input, the command's group
// becomes the foreground group, so that the command can read from the terminal and receives Ctrl-C.
package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const detachedCommand = "__hold"

type holdFlags struct {
	lockFlags

	shell        bool
	forPID       int
	onLostSignal string
	watched      *watched // the process of --for-pid, or nil
}

// New returns the command hold.
func New(g *cli.Globals) *cobra.Command {
	o := &holdFlags{lockFlags: lockFlags{Globals: g, program: []string{"redlatch hold"}}}
	cmd := o.command(o.foreground)
	cmd.Use = "hold [-s] {NAME | --permits NAME:N}"
	cmd.Short = "Hold a lock for a shell script"
	cmd.Long = holdHelp
	cmd.Example = holdExamples
	return cmd
}

// NewDetached returns the hidden command that hold -s starts in the background.
func NewDetached(g *cli.Globals) *cobra.Command {
	o := &holdFlags{lockFlags: lockFlags{Globals: g, program: []string{"redlatch hold"}}}
	cmd := o.command(o.background)
	cmd.Use = detachedCommand
	cmd.Hidden = true
	return cmd
}

func (o *holdFlags) command(do func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Annotations:       cli.RunFails,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			n, why := names(cmd, args)
			switch {
			case why == "" && len(args) < n:
				why = "NAME is missing"
			case why == "" && len(args) > n:
				why = "too many arguments: " + sanitize.Word(args[n])
			}
			if why != "" {
				return refuse(cmd, cli.Errorf(cli.CodeRunFailed, "%s. Usage: redlatch %s; see `redlatch hold --help`", why, cmd.Use))
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
	f.IntVar(&o.forPID, "for-pid", 0, "release the lock when the process with this ID exits (default with -s: the parent process)")
	f.StringVar(&o.onLostSignal, "on-lost-signal", "", "signal for the process of --for-pid if the lock is lost: TERM, INT, HUP, USR1, USR2 or KILL")
	cli.CompleteValues(cmd, "on-lost-signal", "TERM", "INT", "HUP", "USR1", "USR2", "KILL")
	return cmd
}

func (o *holdFlags) check(cmd *cobra.Command) error {
	if err := o.lockFlags.check(cmd); err != nil {
		return err
	}
	changed := cmd.Flags().Changed
	switch {
	case changed("for-pid") && o.forPID < 1:
		return errors.New("--for-pid must be a process ID, such as $$")
	case changed("on-lost-signal") && signals[o.onLostSignal] == 0:
		return errors.New("--on-lost-signal must be TERM, INT, HUP, USR1, USR2 or KILL, if supported by this system")
	case o.shell && o.conflict == 0:
		return errors.New("-s and --conflict-exit-code 0 are mutually exclusive: eval would succeed, and the script would continue without the lock")
	case changed("on-lost-signal") && o.forPID == 0 && !o.shell:
		return errors.New("--on-lost-signal needs --for-pid")
	}
	return nil
}

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
		_ = h.hold.Unlock() // if this fails, the lease expires
		return fmt.Errorf("print the owner: %w", err)
	}
	notify(notifyReady, h.status())
	select {
	case <-h.lost.Done():
		a := o.end(cmd.Context(), h)
		notify(notifyStopping, notifyStatus(a.Text))
		return a.exit()
	case <-ended:
	case <-o.watched.ended():
	}
	notify(notifyStopping)
	return o.end(cmd.Context(), h).exit()
}

// endings omits ignored signals, for example under nohup. It ignores SIGPIPE, because the lock must be released.
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

func (o *holdFlags) begin(ctx context.Context, name string, ended <-chan os.Signal) (*held, error) {
	if o.forPID != 0 {
		var err error
		if o.watched, err = watch(o.forPID); err != nil {
			return nil, fmt.Errorf("--for-pid: %w", err)
		}
	}
	notify(notifyStatus("waiting for lock " + sanitize.Word(name)))
	h, err := o.acquire(ctx, name, ended, o.watched.ended())
	if errors.Is(err, errNotNeeded) {
		return nil, fmt.Errorf("stopped waiting for lock %q: process %d has exited", name, o.forPID)
	}
	return h, err
}

// end also releases a lock whose --max-hold has expired.
func (o *holdFlags) end(ctx context.Context, h *held) answer {
	over, failed := h.hold.Err(), error(nil)
	if over != nil && o.onLostSignal != "" {
		failed = o.watched.signal(signals[o.onLostSignal])
	}
	a := h.outcome(over != nil, over, h.giveUp(ctx, nil), "", "it was released")
	if failed != nil {
		a.Text += "; " + failed.Error()
	}
	return a
}

type answer struct {
	Code int `json:"code"`
	// Text is the message, or "" for success.
	Text string `json:"text,omitempty"`
}

func (h *held) outcome(lost bool, over, unlocked error, during, then string) answer {
	name := h.lock.Name()
	switch {
	case lost && errors.Is(over, redlatch.ErrMaxHold):
		return answer{cli.CodeRunFailed, fmt.Sprintf("lock %q was held for %v, the maximum set by --max-hold: %s", name, h.maxHold, then)}
	case lost || errors.Is(unlocked, redlatch.ErrLost):
		return answer{cli.CodeRunFailed, fmt.Sprintf("lock %q was lost%s: %s", name, during, h.lossOf(over, unlocked))}
	}
	return answer{0, h.notFreed(name, unlocked)}
}

func (a answer) exit() error {
	switch {
	case a.Code != 0:
		return cli.Errorf(a.Code, "%s", a.Text)
	case a.Text != "":
		cli.Messagef(os.Stderr, "%s", sanitize.Message(a.Text))
	}
	return nil
}

// assignments returns shell code that exports env and unsets all other variables of a hold.
func assignments(env []string) string {
	var b strings.Builder
	b.WriteString("unset " + strings.Join(variables, " ") + ";\n")
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&b, "%s=%s; export %s;\n", name, sanitize.Quote(value), name)
	}
	return b.String()
}

// failure returns shell code that fails with code, because eval ignores exit codes.
func failure(code int) string {
	return assignments(nil) + fmt.Sprintf("(exit %d)\n", code)
}

func asksForShell(arg string) bool {
	value, is := strings.CutPrefix(arg, "--shell")
	if !is {
		value, is = strings.CutPrefix(arg, "-s")
	}
	on, err := strconv.ParseBool(strings.TrimPrefix(value, "="))
	return is && (on || err != nil)
}

func refuse(cmd *cobra.Command, err error) error {
	code, said := cli.CodeRunFailed, (*cli.ExitError)(nil)
	if errors.As(err, &said) {
		code = said.Code
	}
	if slices.ContainsFunc(os.Args, asksForShell) { // the flags may not have been parsed
		fmt.Fprint(cmd.OutOrStdout(), failure(code))
	}
	return err
}

var errNoProcess = errors.New("no such process")

// watched is a process that is not a child. A nil watched never ends. On Linux and Windows, it uses a process handle,
// because IDs are reused.
type watched struct {
	process *os.Process
	done    chan struct{} // closed when the process has exited
}

func watch(pid int) (*watched, error) {
	p, err := os.FindProcess(pid)
	if err != nil || !exists(p) {
		return nil, fmt.Errorf("%d: %w", pid, errNoProcess)
	}
	w := &watched{process: p, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.await()
	}()
	return w, nil
}

func (w *watched) ended() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.done
}

func (w *watched) signal(s syscall.Signal) error {
	err := w.process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d could not be signalled: %w", w.process.Pid, err)
	}
	return nil
}
