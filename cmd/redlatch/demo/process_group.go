package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// report is an event with the worker that it came from.
type report struct {
	id    int
	event event
}

// processGroup is the worker processes. Each has a goroutine that reads what it reports
// and ends with it.
type processGroup struct {
	reports   chan report // must be read until every worker is gone
	processes []*process
	wg        sync.WaitGroup
}

// process is one worker process.
type process struct {
	id     int
	cmd    *exec.Cmd
	orders io.WriteCloser
}

// start starts a worker process: program with the hidden command. It returns the
// process's id.
func (t *processGroup) start(program string, cfg *workerConfig) (pid int, err error) {
	cmd := exec.Command(program, workerCommand)
	cmd.Args[0] = "redlatch" // as it is shown in a list of processes
	orders, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start process %d: %w", cfg.ID, err)
	}
	m := &process{id: cfg.ID, cmd: cmd, orders: orders}
	t.processes = append(t.processes, m)
	t.wg.Go(func() {
		m.readEvents(out, t.reports)
		e := event{Kind: gone, Text: exitReason(cmd.Wait(), &complaints), At: time.Now()}
		t.reports <- report{m.id, e}
	})
	line, err := json.Marshal(cfg)
	if err != nil {
		return 0, err
	}
	// A worker that is dead already shows as gone.
	_, _ = orders.Write(append(line, '\n'))
	return cmd.Process.Pid, nil
}

// readEvents passes on what the worker reports until it can report no more.
func (m *process) readEvents(out io.Reader, reports chan<- report) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{Kind: failed, At: time.Now(), Text: fmt.Sprintf("unreadable report %q", lines.Text())}
		}
		reports <- report{m.id, e}
	}
}

// exitReason returns why a process ended badly, "" if it did not.
func exitReason(err error, complaints *bytes.Buffer) string {
	var exit *exec.ExitError
	if err == nil {
		return ""
	}
	last := strings.TrimSpace(complaints.String())
	last = strings.TrimPrefix(last[strings.LastIndexByte(last, '\n')+1:], "redlatch: ")
	if errors.As(err, &exit) && last != "" {
		return last
	}
	return err.Error()
}

// stall makes a worker stall in its next round.
func (t *processGroup) stall(id int) {
	_, _ = io.WriteString(t.processes[id-1].orders, stallOrder) // if it is dead it shows as gone
}

// kill ends a worker at once.
func (t *processGroup) kill(id int) {
	_ = t.processes[id-1].cmd.Process.Kill() // fails if it is dead already
}

// stopAll orders all workers to stop and returns when they have ended. Their last reports
// go to see. A process that takes longer than bound is killed.
func (t *processGroup) stopAll(bound time.Duration, see func(report)) {
	for _, m := range t.processes {
		_, _ = io.WriteString(m.orders, stopOrder) // if it is dead it shows as gone
	}
	overdue := time.AfterFunc(bound, func() {
		for _, m := range t.processes {
			t.kill(m.id)
		}
	})
	defer overdue.Stop()
	go func() {
		t.wg.Wait()
		close(t.reports)
	}()
	for r := range t.reports {
		see(r)
	}
}
