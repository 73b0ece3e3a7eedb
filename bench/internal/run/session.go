package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// patience is how long a worker may be silent beyond what it was asked for.
const patience = 90 * time.Second

const (
	// restMost is for how long workers are waited for to come to rest, restLook how often
	// it is looked, and restShare the part of one processor that is no work any more.
	restMost  = 10 * time.Second
	restLook  = 200 * time.Millisecond
	restShare = 10
)

// session is a worker process. It is for one goroutine.
type session struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	encoder *json.Encoder
	used    bool
}

// startSession starts a worker on these processors.
func startSession(l *host.Launcher, command []string, cpus []int) (*session, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // a worker of our own
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.Start(cmd, cpus); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	return &session{cmd: cmd, in: in, out: json.NewDecoder(out), encoder: json.NewEncoder(in)}, nil
}

// errWork is what a worker says went wrong; the worker is fit for more.
var errWork = errors.New("worker")

// tell sends an order or a spec.
func (s *session) tell(order any) error { return s.encoder.Encode(order) }

// await reads the next event, and ends a worker that is silent for too long.
func (s *session) await(want string, within time.Duration) (work.Event, error) {
	late := time.AfterFunc(within+patience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	var e work.Event
	if err := s.out.Decode(&e); err != nil {
		return e, fmt.Errorf("the worker ended instead of being %s: %w", want, err)
	}
	if e.Error != "" {
		return e, fmt.Errorf("%w: %s", errWork, e.Error)
	}
	if e.Event != want {
		return e, fmt.Errorf("the worker is %s instead of %s", e.Event, want)
	}
	return e, nil
}

// calm waits, for most at most, for workers that are kept to come to rest by themselves:
// they compile what they have just done, and clean up. It returns false if they are still
// busy then. Little processor time alone does not show rest: on a machine that is busy with
// something else, a worker may wait for a processor.
func calm(workers []party, most time.Duration) bool {
	all := make([]*os.Process, len(workers))
	for i, p := range workers {
		all[i] = p.cmd.Process
	}
	before := host.CPUTime(all...)
	for began := time.Now(); time.Since(began) < most; {
		time.Sleep(restLook)
		now := host.CPUTime(all...)
		if now-before <= restLook/restShare && !host.Runnable(all...) {
			return true
		}
		before = now
	}
	return false
}

// close ends the worker, politely at first.
func (s *session) close() {
	_ = host.Wake(s.cmd.Process) // one that cannot be woken is killed
	_ = s.in.Close()
	late := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_ = s.cmd.Wait()
}
