package redistest

import (
	"os"
	"os/exec"
	"runtime"
)

// process is one run of a server program.
type process struct {
	cmd     *exec.Cmd
	started chan error    // gets the outcome of the start, once
	done    chan struct{} // closed when the process has been waited for

}

// spawn starts binary with its output appended to the file logPath.
func spawn(binary string, args []string, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy

	cmd := exec.Command(binary, args...) //nolint:gosec // the tester's own choice of server
	// A file, not a writer: a writer would cost a goroutine per process.
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	p := &process{cmd: cmd, started: make(chan error, 1), done: make(chan struct{})}
	go p.run()
	if err := <-p.started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the process and waits for its end, all on one OS thread: the
// kernel counts the thread that started a process as its parent.
func (p *process) run() {
	defer close(p.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	p.started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how it ended is in its log
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process, whatever its state, and waits until it is gone.
func (p *process) kill() {
	// The one error is that it has ended already.
	_ = p.cmd.Process.Kill()
	<-p.done
}
