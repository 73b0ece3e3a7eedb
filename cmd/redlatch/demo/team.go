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

// team is the worker processes. Each has a goroutine that reads what it reports
// and ends with it.
type team struct {
	reports chan report // must be read until every worker is gone
	members []*member
	wg      sync.WaitGroup
}

// member is one worker process.
type member struct {
	id     int
	cmd    *exec.Cmd
	orders io.WriteCloser
}

// hire starts a worker process: program with the hidden command. It returns the
// process's id.
func (t *team) hire(program string, cfg *workerConfig) (pid int, err error) {
	cmd := exec.Command(program, workerCommand)
	cmd.Args[0] = "redlatch" // for those who look at a list of processes
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
	m := &member{id: cfg.ID, cmd: cmd, orders: orders}
	t.members = append(t.members, m)
	t.wg.Go(func() {
		m.listen(out, t.reports)
		e := event{Kind: gone, Text: verdict(cmd.Wait(), &complaints), At: time.Now()}
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

// listen passes on what the worker reports until it can report no more.
func (m *member) listen(out io.Reader, reports chan<- report) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{Kind: failed, At: time.Now(), Text: fmt.Sprintf("unreadable report %q", lines.Text())}
		}
		reports <- report{m.id, e}
	}
}

// verdict returns why a process ended badly, "" if it did not.
func verdict(err error, complaints *bytes.Buffer) string {
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

// stall makes a worker stand still in its next round.
func (t *team) stall(id int) {
	_, _ = io.WriteString(t.members[id-1].orders, stallOrder) // if it is dead it shows as gone
}

// kill ends a worker at once.
func (t *team) kill(id int) {
	_ = t.members[id-1].cmd.Process.Kill() // fails if it is dead already
}

// dismiss tells all workers to stop and returns when they are gone. What they
// still report goes to see. Whoever takes longer than bound is killed.
func (t *team) dismiss(bound time.Duration, see func(report)) {
	for _, m := range t.members {
		_, _ = io.WriteString(m.orders, stopOrder) // if it is dead it shows as gone
	}
	overdue := time.AfterFunc(bound, func() {
		for _, m := range t.members {
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
