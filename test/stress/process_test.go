package stress

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// process is a client process.
type process struct {
	name   string
	path   string // of its history
	cmd    *exec.Cmd
	in     io.WriteCloser
	output chan string   // its lines; closed with its output
	done   chan struct{} // closed when it has been waited for

	stopped history.Time // since when it stands still, 0 if it does not
}

// answerBound is how long a process may take for an answer besides its work.
const answerBound = 30 * time.Second

// startProcess starts a process and returns when it is ready.
func startProcess(t *testing.T, cfg worker.Config, dir string) *process {
	t.Helper()
	cfg.History = filepath.Join(dir, cfg.Process+".jsonl")
	text, err := json.Marshal(cfg)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	log, err := os.Create(filepath.Join(dir, cfg.Process+".log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{name: cfg.Process, path: cfg.History, cmd: cmd, output: make(chan string, 16), done: make(chan struct{})}
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started := make(chan error, 1)
	go p.run(out, started)
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone
		<-p.done
	})
	p.expect(t, "ready")
	return p
}

// run starts the process and waits for its end, all on one OS thread, because the
// kernel ends the process with the thread that started it.
func (p *process) run(out io.Reader, started chan<- error) {
	defer close(p.done)
	defer close(p.output)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.output <- lines.Text()
	}
	_ = p.cmd.Wait() // the caller that ended it knows how
}

func (p *process) send(t *testing.T, what string) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, what)
	require.NoError(t, err, "process %s", p.name)
}

// expect waits for a line that begins with want, and returns it.
func (p *process) expect(t *testing.T, want string) string {
	t.Helper()
	select {
	case line, ok := <-p.output:
		require.True(t, ok, "process %s ended, %q was expected\n%s", p.name, want, p.lastOutput())
		require.Contains(t, line, want, "process %s", p.name)
		return line
	case <-time.After(answerBound):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // where does it hang?
		<-p.done
		require.FailNow(t, "no answer", "process %s did not say %q within %v\n%s", p.name, want, answerBound, p.lastOutput())
		return ""
	}
}

// lastOutput is what the process wrote as it died. It is silent otherwise: what it
// says is a panic or a race.
func (p *process) lastOutput() string {
	text, err := os.ReadFile(p.path[:len(p.path)-len("jsonl")] + "log")
	if err != nil {
		return err.Error()
	}
	const most = 20000
	return string(text[:min(len(text), most)])
}

// stop freezes the process.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.stopped = history.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
}

// resume lets it go on, and writes down that it stood still.
func (p *process) resume(t *testing.T, log *history.Writer) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	log.Write(history.Record{T: p.stopped, P: p.name, Kind: history.Stop, Until: history.Now()})
	p.stopped = 0
}

// kill ends it at once. The time is taken before, so that nothing counts that it
// can have done afterwards.
func (p *process) kill(t *testing.T, log *history.Writer) {
	t.Helper()
	log.Write(history.Record{P: p.name, Kind: history.Kill})
	require.NoError(t, p.cmd.Process.Kill())
	<-p.done
}

// exit has it end by itself, with all that it holds.
func (p *process) exit(t *testing.T) {
	t.Helper()
	p.send(t, "exit")
	select {
	case <-p.done:
	case <-time.After(answerBound):
		require.FailNow(t, "it does not end", "process %s", p.name)
	}
}
