// Package cli contains the code that all redlatch commands share.
//
//	Execute ─▶ NewRoot ─▶ each Constructor, with the Globals ─▶ the command
//	                                                              │ error
//	           exit code, one line on standard error ◀────────────┘
package cli

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Constructor creates a command.
type Constructor func(*Globals) *cobra.Command

// Execute runs the command line and returns the exit code. It must be called on the main goroutine.
// If output cannot be written, it cancels the context of the command.
func Execute(ctx context.Context, args []string, commands ...Constructor) int {
	return reaping(func() int { return execute(ctx, args, commands) })
}

func execute(ctx context.Context, args []string, commands []Constructor) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := NewStdout(os.Stdout, cancel)
	g := &Globals{}
	root := newRoot(g, commands)
	refuseTheUnknown(root)
	root.SetOut(out)
	root.SetArgs(args)
	ran := false
	root.PersistentPreRun = func(*cobra.Command, []string) { ran = true }
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		err = coded(cmd, ran || out.Err() != nil, wrongCommand(root, err))
	}
	err = written(err, out.Err())
	var exit *ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if exit.Err != nil {
		text := exit.Err.Error()
		if lost := out.Err(); lost == nil || !errors.Is(exit.Err, lost) {
			text = g.InContext(exit.Err)
		}
		Messagef(os.Stderr, "%s", sanitize.Message(sanitize.WithoutPrefix(text)))
	}
	return exit.Code
}

const runFails = "run fails"

// RunFails is the annotation that marks commands that return another program's exit code. If such a
// command itself fails, it exits with [CodeRunFailed].
var RunFails = map[string]string{runFails: "true"}

func coded(cmd *cobra.Command, ran bool, err error) error {
	var exit *ExitError
	code := CodeFailed
	switch said := errors.As(err, &exit); {
	case said && exit.Err == nil:
		return exit
	case said:
		code = exit.Code
	case cmd.Annotations[runFails] != "":
		code = CodeRunFailed
	case !ran:
		code = CodeUsage
	}
	if code == CodeFailed && errors.Is(err, redlatch.ErrInvalid) {
		code = CodeUsage // such as an invalid lock name
	}
	return &ExitError{Code: code, Err: err}
}

// written keeps an exit code that another failure has set, because scripts depend on it. It ignores a closed pipe.
func written(err, lost error) error {
	var exit *ExitError
	coded, closed := errors.As(err, &exit), errors.Is(lost, syscall.EPIPE)
	switch {
	case lost == nil || coded && errors.Is(err, lost):
		return err
	case coded && exit.Code != CodeFailed && (closed || exit.Err != nil):
		return err
	case coded && exit.Code != CodeFailed:
		return &ExitError{Code: exit.Code, Err: lost}
	case closed:
		return &ExitError{Code: SignalCode(syscall.SIGPIPE)}
	}
	return &ExitError{Code: CodeFailed, Err: lost}
}

// NewRoot returns the redlatch command with the given commands.
func NewRoot(commands ...Constructor) *cobra.Command { return newRoot(&Globals{}, commands) }

func newRoot(g *Globals, commands []Constructor) *cobra.Command {
	root := &cobra.Command{
		Use:   "redlatch",
		Short: "Redisson-compatible locks from the shell",
		Long: `redlatch uses the same locks as Redisson, so Go, Java and shell processes can
share locks on one Redis or Valkey server.

The exit code is 0 on success, 2 if the command line or the server's address is
invalid (125 for redlatch run, hold and release), and 1 for other failures,
unless the command's help says otherwise. If signal n ended the command, it is
128+n: 130 for SIGINT (Ctrl-C), 143 for SIGTERM. redlatch help exit-codes lists
all of them.`,
		Example: `  redlatch demo                                # try it; needs no Redis
  redlatch run nightly-report -- ./report.sh   # run a command under a lock
  redlatch run --try import -- ./import.sh     # skip it if the lock is held
  redlatch status nightly-report               # who holds it, and for how long
  redlatch doctor                              # can the server serve locks?`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 80 "))
	root.SetFlagErrorFunc(WrongFlag)
	root.SuggestionsMinimumDistance = 2
	root.DisableSuggestions = true
	g.register(root)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.AddCommand(newExitCodes())
	for _, newCommand := range commands {
		root.AddCommand(Checked(newCommand(g)))
	}
	return root
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "redlatch, version unknown"
	}
	of := &info.Main
	for _, dep := range info.Deps {
		if dep.Path == "github.com/redlatch/redlatch" { // as in cmd/redlatch/full
			of = dep
		}
	}
	text := "redlatch " + of.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			text += " (" + s.Value[:12] + ")"
		}
	}
	return text + " " + info.GoVersion
}

// Executable returns the path of this program. On Linux, the path works even if the file has been replaced.
func Executable() string {
	path, err := os.Executable()
	switch {
	case runtime.GOOS == "linux":
		return "/proc/self/exe"
	case err != nil:
		return os.Args[0]
	}
	return path
}
