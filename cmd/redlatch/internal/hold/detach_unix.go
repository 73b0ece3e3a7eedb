//go:build unix

package hold

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// taken tells the process in the background that its assignments were printed.
const taken = 't'

// detach starts the background process, waits until it holds the lock, and prints the assignments.
// The background process ends if this one ends before that.
func (o *holdFlags) detach(cmd *cobra.Command) error {
	ended, stop := endings()
	defer stop()
	// The same command line with another command, and the parent process as the default of
	// --for-pid.
	_, rest, err := cmd.Root().Find(os.Args[1:])
	if err != nil {
		return refuse(cmd, err)
	}
	args := append([]string{"redlatch", detachedCommand, "--for-pid=" + strconv.Itoa(os.Getppid())}, rest...)
	proc := &exec.Cmd{Path: cli.Executable(), Args: args, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	line, report, err := startAlone(proc)
	if err != nil {
		return refuse(cmd, cli.Errorf(cli.CodeRunFailed, "start a process in the background: %w", err))
	}
	defer func() { _ = line.Close() }()
	go func() {
		for sig := range ended {
			_ = proc.Process.Signal(sig) // it may have ended
		}
	}()
	text, err := io.ReadAll(report)
	if err != nil || len(text) == 0 {
		return refuse(cmd, &cli.ExitError{Code: codeOf(proc)}) // it has printed the reason
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return cli.Errorf(cli.CodeRunFailed, "the assignments could not be printed: %w", err)
	}
	if _, err := line.Write([]byte{taken}); err != nil {
		return refuse(cmd, &cli.ExitError{Code: codeOf(proc)})
	}
	return nil
}

// startAlone starts a process and returns its standard input and output. It closes all other files
// but standard error: they would stay open as long as the lock is held.
func startAlone(proc *exec.Cmd) (line io.WriteCloser, report io.Reader, err error) {
	const most = 1024
	for fd := 3; fd < most; fd++ {
		unix.CloseOnExec(fd)
	}
	if line, err = proc.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if report, err = proc.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	return line, report, proc.Start()
}

// codeOf waits for a process that failed to hold the lock, and returns its exit code.
func codeOf(proc *exec.Cmd) int {
	_ = proc.Wait() // ProcessState has the result
	if code := proc.ProcessState.ExitCode(); code > 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, "redlatch: the process in the background was killed")
	return cli.CodeRunFailed
}
