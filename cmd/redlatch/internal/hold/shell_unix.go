//go:build unix

package hold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// taken is the byte that tells the background process that its assignments were printed.
const taken = 't'

// detach starts the background process, waits until it holds the lock, and prints its assignments.
// The background process exits if this process exits before that.
func (o *holdFlags) detach(cmd *cobra.Command) error {
	ended, stop := endings()
	defer stop()
	// Run the hidden command with the same arguments. --for-pid defaults to the parent process.
	_, rest, err := cmd.Root().Find(os.Args[1:])
	if err != nil {
		return refuse(cmd, err)
	}
	args := append([]string{"redlatch", detachedCommand, "--for-pid=" + strconv.Itoa(os.Getppid())}, rest...)
	proc := &exec.Cmd{Path: cli.Executable(), Args: args, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	line, report, err := startAlone(proc)
	if err != nil {
		return refuse(cmd, fmt.Errorf("start a background process: %w", err))
	}
	defer func() { _ = line.Close() }()
	go func() {
		for sig := range ended {
			_ = proc.Process.Signal(sig) // fails if the process has exited
		}
	}()
	text, err := io.ReadAll(report)
	if err != nil || len(text) == 0 {
		return refuse(cmd, &cli.ExitError{Code: codeOf(proc)}) // the process has printed the reason
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return fmt.Errorf("print the assignments: %w", err)
	}
	if _, err := line.Write([]byte{taken}); err != nil {
		return refuse(cmd, &cli.ExitError{Code: codeOf(proc)})
	}
	return nil
}

// startAlone starts a process that inherits only standard error, because inherited files would stay open.
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

func codeOf(proc *exec.Cmd) int {
	_ = proc.Wait() // the result is in ProcessState
	if code := proc.ProcessState.ExitCode(); code > 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, "redlatch: the background process was killed")
	return cli.CodeRunFailed
}

func (o *holdFlags) background(cmd *cobra.Command, args []string) error {
	_ = os.Unsetenv("NOTIFY_SOCKET") // the service manager expects another main process
	ended, stop := endings()
	defer stop()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	printed := make(chan bool, 1)
	go func() {
		var word [1]byte
		n, _ := os.Stdin.Read(word[:]) // if the pipe ends, the assignments were not printed
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
		_ = h.hold.Unlock() // if this fails, the lease expires
		return err
	}
	defer server.close()
	if !report(h, server, printed) {
		_ = h.hold.Unlock() // if this fails, the lease expires
		return fmt.Errorf("the assignments of lock %q were not read", h.lock.Name())
	}
	return o.serve(cmd.Context(), h, server, ended)
}

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

// serve continues after a loss, so that it can report the loss to redlatch release.
func (o *holdFlags) serve(ctx context.Context, h *held, server *socket, ended <-chan os.Signal) error {
	a, lost := answer{}, h.lost.Done()
	for {
		var request *request
		select {
		case <-lost:
			a, lost = o.end(ctx, h), nil
			continue
		case request = <-server.requests:
		case <-ended:
		case <-o.watched.ended():
		}
		if lost != nil {
			a = o.end(ctx, h)
		}
		if request != nil {
			request.answer(a)
		}
		return a.exit()
	}
}

// redirect replaces the file descriptor, because the runtime writes to standard error by number.
func redirect(to, of *os.File) error { return unix.Dup2(int(to.Fd()), int(of.Fd())) }

var shell = []string{"/bin/sh", "-c"}

func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "KILL": syscall.SIGKILL,
}

const pollEvery = 100 * time.Millisecond

func (w *watched) await() {
	for exists(w.process) && !isZombie(w.process.Pid) {
		time.Sleep(pollEvery)
	}
}

func exists(p *os.Process) bool {
	err := p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}

// isZombie returns false for a process whose first thread has exited while others run.
func isZombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	const state, threads = 0, 17
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name may contain any character
	return err == nil && len(fields) > threads && bytes.ContainsAny(fields[state], "ZX") && len(fields[threads]) == 1 && fields[threads][0] <= '1'
}
