// Package run is the command redlatch run: it runs a command while it holds a lock.
//
//	run.New ─▶ Acquire ─▶ runner.Start ─▶ runner.Supervise ─▶ GiveUp ─▶ exit code
//
// Package holding takes the lock and gives it up. Package runner has the processes, and the guard that kills them with redlatch.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/run/runner"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/holding"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/internal/tool/sdnotify"
)

const (
	onLostTerm   = "term"
	onLostKill   = "kill"
	onLostIgnore = "ignore"
)

// onLost is what the values of --on-lost mean.
var onLost = map[string]runner.Action{
	onLostTerm: runner.Terminate, onLostKill: runner.Kill, onLostIgnore: runner.Ignore,
}

// runOptions are the flags of run.
type runOptions struct {
	holding.Options

	onLost     string
	onLostExec string
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	o := &runOptions{Options: holding.Options{Globals: g}}
	cmd := &cobra.Command{
		Use:     "run [flags] {NAME | --permits NAME:N} -- COMMAND [ARG...]",
		Short:   "Run a command under a lock",
		Long:    runHelp,
		Example: runExamples,

		ValidArgsFunction: completeRun,
		Args: func(cmd *cobra.Command, args []string) error {
			if why := wrongArgs(cmd, args); why != "" {
				return cli.Errorf(runner.CodeFailed, "%s. Usage: redlatch %s; `redlatch run --help` tells more", why, cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), o.Name(args), args[cmd.ArgsLenAtDash():])
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if err = cli.WrongFlag(cmd, err); !slices.Contains(os.Args, "--") {
			err = fmt.Errorf("%w. COMMAND and its flags come behind --", err)
		}
		return &cli.ExitError{Code: runner.CodeFailed, Err: err}
	})
	o.register(cmd)
	return cmd
}

// wrongArgs says what is wrong with the arguments, "" for nothing.
func wrongArgs(cmd *cobra.Command, args []string) string {
	names, before := 1, cmd.ArgsLenAtDash()
	if cmd.Flags().Changed("permits") {
		names = 0
	}
	switch {
	case before < 0:
		return "NAME or --permits comes before --, and COMMAND behind it"
	case before > 0 && names == 0:
		return "--permits NAME:N stands in place of NAME: leave " + sanitize.Word(args[0]) + " out"
	case before < names:
		return "NAME is missing before --"
	case before > names:
		return sanitize.Word(args[names]) + " stands before --: what comes behind it is COMMAND and its arguments"
	case len(args) == names:
		return "COMMAND is missing behind --"
	}
	return ""
}

// register adds the flags.
func (o *runOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	o.Register(f)
	f.StringVar(&o.onLost, "on-lost", onLostTerm, "what becomes of COMMAND when the lock is lost: term, kill or ignore")
	f.StringVar(&o.onLostExec, "on-lost-exec", "", "run this command line of the shell when the lock is lost, for 10s at most")
	cli.CompleteValues(cmd, "on-lost", onLostTerm, onLostKill, onLostIgnore)
}

// check refuses flags that make no sense.
func (o *runOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if err := o.Check(changed); err != nil {
		return err
	}
	_, known := onLost[o.onLost]
	switch {
	case !known:
		return cli.Errorf(runner.CodeFailed, "--on-lost must be term, kill or ignore")
	case o.onLost == onLostIgnore && changed("max-hold"):
		return cli.Errorf(runner.CodeFailed, "--max-hold and --on-lost ignore contradict each other")
	}
	return nil
}

// run is the whole life: acquire, start, wait, unlock, exit code.
func (o *runOptions) run(ctx context.Context, name string, argv []string) error {
	path, err := runner.Find(argv[0])
	if err != nil {
		return notRun(err)
	}
	signals, stop := runner.Signals()
	defer stop()
	sdnotify.Send(sdnotify.Status("waits for lock " + sanitize.Word(name)))
	held, err := o.Acquire(ctx, name, signals)
	if err != nil {
		return err
	}
	defer held.Close()
	proc, err := runner.Start(path, argv, runner.Environ(held.Environment()...))
	if err != nil {
		_ = held.Hold.Unlock() // the lock was not used: its lease frees it at worst
		return notRun(err)
	}
	sdnotify.Send(sdnotify.Ready, sdnotify.Status("holds lock "+sanitize.Word(name)+" since "+held.Since.UTC().Format(time.RFC3339)))
	lost := held.Hold.Context(ctx)
	finish := o.onLoss(lost, name, held)
	end := runner.Supervise(lost, proc, signals,
		runner.Policy{OnLoss: onLost[o.onLost], Grace: runner.Grace(o.Margin())})
	reported := finish()
	over := held.Hold.Err()
	if over == nil {
		sdnotify.Send(sdnotify.Stopping, sdnotify.Status("frees lock "+sanitize.Word(name)))
	}
	unlocked := o.GiveUp(ctx, held, signals)
	if !reported && (errors.Is(over, redlatch.ErrLost) || errors.Is(unlocked, redlatch.ErrLost)) {
		o.report(name, held, over, unlocked)
	}
	return o.finish(name, end, over, unlocked)
}

// finish makes the exit code of how the command, its hold and the unlocking went.
func (o *runOptions) finish(name string, end runner.End, over, unlocked error) error {
	lost := end.Lost || errors.Is(unlocked, redlatch.ErrLost)
	switch {
	case end.Lost && errors.Is(over, redlatch.ErrMaxHold):
		return cli.Errorf(runner.CodeFailed, "lock %q was held for %v, which is the most by --max-hold: the command was ended", name, o.MaxHold)
	case lost && o.onLost == onLostIgnore:
		output.Messagef(os.Stderr, "warning: lock %q was lost while the command ran, which went on without it: %s", name, o.LossOf(over, unlocked))
	case lost:
		return cli.Errorf(runner.CodeFailed, "lock %q was lost while the command ran: %s", name, o.LossOf(over, unlocked))
	case errors.Is(unlocked, holding.ErrUntold):
		output.Messagef(os.Stderr, "lock %q was freed, but %v", name, unlocked)
	case unlocked != nil && o.AtLeast > 0:
		output.Messagef(os.Stderr, "warning: lock %q: %s", name, sanitize.WithoutPrefix(connect.Reason(unlocked)))
	case unlocked != nil:
		// The command had the lock to its end, which is what its user needs to know.
		output.Messagef(os.Stderr, "lock %q could not be freed and is left to its lease: %s", name, sanitize.WithoutPrefix(connect.ReasonAt(unlocked)))
	}
	if end.Code != 0 {
		return &cli.ExitError{Code: end.Code}
	}
	return nil
}

func notRun(err error) error {
	var failed *runner.Error
	if errors.As(err, &failed) {
		return &cli.ExitError{Code: failed.Code, Err: err}
	}
	return &cli.ExitError{Code: runner.CodeFailed, Err: err}
}
