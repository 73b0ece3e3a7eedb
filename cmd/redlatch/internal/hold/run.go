package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Values of --on-lost.
const (
	lossTerm   = "term" // send SIGTERM to the group, and SIGKILL after the grace period
	lossKill   = "kill" // send SIGKILL to the group
	lossIgnore = "ignore"
)

const (
	// lossLimit bounds the --on-lost-exec command. Its output may stay open for lossOutput longer.
	lossLimit  = 10 * time.Second
	lossOutput = time.Second
)

type runFlags struct {
	lockFlags

	onLost     string
	onLostExec string
	verbose    bool
}

// NewRun returns the command run.
func NewRun(g *cli.Globals) *cobra.Command {
	o := &runFlags{lockFlags: lockFlags{Globals: g}}
	cmd := &cobra.Command{
		Use:     "run [flags] {NAME | --permits NAME:N} -- COMMAND [ARG...]",
		Short:   "Run a command under a lock",
		Long:    runHelp,
		Example: runExamples,

		Annotations:       cli.RunFails,
		ValidArgsFunction: completeRun,
		Args: func(cmd *cobra.Command, args []string) error {
			if why := wrongRun(cmd, args); why != "" {
				return cli.Errorf(cli.CodeRunFailed, "%s. Usage: redlatch %s; see `redlatch run --help`", why, cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), o.name(args), args[cmd.ArgsLenAtDash():])
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if err = cli.WrongFlag(cmd, err); !slices.Contains(os.Args, "--") {
			err = fmt.Errorf("%w. COMMAND and its flags must follow --", err)
		}
		return err
	})
	f := cmd.Flags()
	o.register(f, true)
	f.StringVar(&o.onLost, "on-lost", lossTerm, "action on COMMAND if the lock is lost: term, kill or ignore")
	f.StringVar(&o.onLostExec, "on-lost-exec", "", "shell command line to run if the lock is lost, for at most 10s")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print the lock's owner and label on standard error")
	cli.CompleteValues(cmd, "on-lost", lossTerm, lossKill, lossIgnore)
	return cmd
}

const guardCommand = "__guard"

// NewGuard returns the hidden command that kills the command of run if redlatch dies.
func NewGuard(*cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:    guardCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := guardGroup(); code != 0 {
				return &cli.ExitError{Code: code}
			}
			return nil
		},
	}
}

// completeRun suggests -- after the name.
func completeRun(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// Cobra adds -- to the command line that it parses.
	switch {
	case slices.Contains(os.Args, "--"):
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) == 1:
		return []cobra.Completion{"--"}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func wrongRun(cmd *cobra.Command, args []string) string {
	before := cmd.ArgsLenAtDash()
	if before < 0 {
		return "NAME or --permits must precede --, and COMMAND must follow it"
	}
	n, wrong := names(cmd, args[:before])
	switch {
	case wrong != "":
		return wrong
	case before < n:
		return "NAME is missing before --"
	case before > n:
		return sanitize.Word(args[n]) + " precedes --: COMMAND and its arguments must follow --"
	case len(args) == n:
		return "COMMAND is missing after --"
	}
	return ""
}

func (o *runFlags) check(cmd *cobra.Command) error {
	if err := o.lockFlags.check(cmd); err != nil {
		return err
	}
	switch {
	case o.onLost != lossTerm && o.onLost != lossKill && o.onLost != lossIgnore:
		return errors.New("--on-lost must be term, kill or ignore")
	case o.onLost == lossIgnore && cmd.Flags().Changed("max-hold"):
		return errors.New("--max-hold and --on-lost ignore are mutually exclusive")
	}
	return nil
}

func (o *runFlags) run(ctx context.Context, name string, argv []string) error {
	path, err := findCommand(argv[0])
	if err != nil {
		return err
	}
	o.program = argv
	signals, stop := forwardedSignals()
	defer stop()
	notify(notifyStatus("waiting for lock " + sanitize.Word(name)))
	h, err := o.acquire(ctx, name, signals, nil)
	if err != nil {
		return err
	}
	defer h.disconnect()
	if o.verbose {
		cli.Messagef(os.Stderr, "lock %q on %s is held by %s", name, o.Named(), sanitize.Message(inspect.OwnerAnd(h.owner(), engine.EngineOf(h.client).Label)))
	}
	proc, err := startCommand(path, argv, environ(h.environment()))
	if err != nil {
		_ = h.hold.Unlock() // if this fails, the lease expires
		return err
	}
	notify(notifyReady, h.status())
	reported := o.onLoss(h)
	lost, signaled := supervise(h.lost, proc, signals, o.onLost, h.grace())
	if signaled {
		signals = nil // do not wait for --at-least after a signal
	}
	told := reported()
	over := h.hold.Err()
	if over == nil {
		notify(notifyStopping, notifyStatus("releasing lock "+sanitize.Word(name)))
	}
	unlocked := h.giveUp(ctx, signals)
	if !told && (errors.Is(over, redlatch.ErrLost) || errors.Is(unlocked, redlatch.ErrLost)) {
		o.report(h, over, unlocked)
	}
	a := h.outcome(lost, over, unlocked, " while the command ran", "the command was stopped")
	if a.Code != 0 && o.onLost == lossIgnore {
		a = answer{Text: fmt.Sprintf("warning: lock %q was lost while the command ran, and the command continued without it: %s", name, o.lossOf(over, unlocked))}
	}
	if err := a.exit(); err != nil || proc.code == 0 {
		return err
	}
	return &cli.ExitError{Code: proc.code}
}

func (h *held) status() string {
	return notifyStatus("holding lock " + sanitize.Word(h.lock.Name()) + " since " + h.since.UTC().Format(time.RFC3339))
}

// onLoss reports a loss as soon as it occurs. The caller must call reported, which cancels the
// report or waits for it.
func (o *runFlags) onLoss(h *held) (reported func() bool) {
	done := make(chan struct{})
	stop := context.AfterFunc(h.lost, func() {
		defer close(done)
		o.report(h, h.hold.Err(), nil)
	})
	return func() bool {
		if stop() {
			return false
		}
		<-done
		return true
	}
}

func (o *runFlags) report(h *held, over, unlocked error) {
	if errors.Is(over, redlatch.ErrMaxHold) {
		return
	}
	why := o.lossOf(over, unlocked)
	status := notifyStatus("lost lock " + sanitize.Word(h.lock.Name()) + ": " + why)
	if o.onLost == lossIgnore {
		notify(status)
	} else {
		notify(notifyStopping, status)
	}
	if o.onLostExec == "" {
		return
	}
	if err := execute(o.onLostExec, append(h.environment(), envLoss+"="+why), lossLimit); err != nil {
		cli.Messagef(os.Stderr, "warning: --on-lost-exec: %v", err)
	}
}

// execute sends the output to standard error, because standard output belongs to the command.
func execute(line string, env []string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], line)...) //nolint:gosec // the user names the command
	cmd.Env = environ(env)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.WaitDelay = lossOutput
	endWithChildren(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("it was killed after %v", limit)
	}
	return err
}

func environ(more []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(old string) bool {
		name, _, _ := strings.Cut(old, "=")
		return slices.Contains(variables, name) || slices.ContainsFunc(more, func(env string) bool { return strings.HasPrefix(env, name+"=") })
	})
	return append(env, more...)
}

// These belong to systemd's sd_notify(3) protocol.
const (
	notifySocketEnv = "NOTIFY_SOCKET"
	notifyLimit     = time.Second

	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

func notifyStatus(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

func notify(messages ...string) {
	path := os.Getenv(notifySocketEnv)
	if path == "" {
		return
	}
	// Package net understands an initial @, which marks an abstract socket name.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteDeadline(time.Now().Add(notifyLimit))
	_, _ = conn.Write([]byte(strings.Join(messages, "\n")))
}
