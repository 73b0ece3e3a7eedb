//go:build unix

package hold

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// detach starts the process that holds the lock in the background, waits until it does, and prints
// the assignments. The process ends when this one does before that.
func (o *holdFlags) detach(cmd *cobra.Command) error {
	ended, stop := endings()
	defer stop()
	line, err := argv(cmd)
	if err != nil {
		return refuse(cmd, err)
	}
	d, err := start(line)
	if err != nil {
		return refuse(cmd, cli.Errorf(cli.CodeRunFailed, "start a process in the background: %w", err))
	}
	defer func() { _ = d.line.Close() }() // a pipe, nothing is buffered
	go func() {
		for sig := range ended {
			_ = d.proc.Signal(sig) // it may have ended
		}
	}()
	text, err := io.ReadAll(d.report)
	if err != nil || len(text) == 0 {
		return refuse(cmd, &cli.ExitError{Code: d.code()}) // it has said why
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return cli.Errorf(cli.CodeRunFailed, "the assignments could not be printed: %w", err)
	}
	if _, err := d.line.Write([]byte{taken}); err != nil {
		return refuse(cmd, &cli.ExitError{Code: d.code()})
	}
	return nil
}

// taken is what the process in the background reads when its assignments were printed.
const taken = 't'

// argv makes the command line of the process in the background: that of this one, with another
// command, and with the parent process where none is named.
func argv(cmd *cobra.Command) ([]string, error) {
	_, rest, err := cmd.Root().Find(os.Args[1:])
	if err != nil {
		return nil, err
	}
	return append([]string{"redlatch", detachedCommand, "--for-pid=" + strconv.Itoa(os.Getppid())}, rest...), nil
}

// detached is the process in the background, as the one that starts it sees it.
type detached struct {
	proc   *os.Process
	report *os.File // its standard output
	line   *os.File // its standard input
}

// start starts the process in a session of its own. Of the files that are open here it gets
// standard error alone: others would stay open for as long as the lock is held.
func start(argv []string) (*detached, error) {
	const most = 1024
	for fd := 3; fd < most; fd++ {
		unix.CloseOnExec(fd)
	}
	in, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // a pipe, nothing is buffered
	report, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, line.Close())
	}
	defer func() { _ = out.Close() }() // a pipe, nothing is buffered
	proc, err := os.StartProcess(cli.Executable(), argv, &os.ProcAttr{
		Files: []*os.File{in, out, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(err, line.Close(), report.Close())
	}
	return &detached{proc: proc, report: report, line: line}, nil
}

// code waits for the end of a process that could not hold the lock, and returns its exit code.
func (d *detached) code() int {
	state, err := d.proc.Wait()
	if err != nil || state.ExitCode() <= 0 {
		fmt.Fprintln(os.Stderr, "redlatch: the process in the background was killed")
		return cli.CodeRunFailed
	}
	return state.ExitCode()
}
