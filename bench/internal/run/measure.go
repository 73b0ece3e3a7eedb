package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/stats"
	"github.com/redlatch/redlatch/bench/internal/work"
)

type party struct {
	*session
	entrant Entrant
	spec    work.Spec
}

func measure(tb testing.TB, server host.Server, parties []party) ([]work.Values, host.Work, error) {
	tb.Helper()
	server.Clear(tb)
	err := each(parties, func(p party) error { return p.tell(p.spec) })
	if err == nil {
		_, err = gather(parties, work.EventReady)
	}
	before := server.Info(tb)
	if err == nil {
		err = each(parties, func(p party) error { return p.tell("go") })
	}
	if err != nil {
		return nil, host.Work{}, err
	}
	values, err := gather(parties, work.EventMeasured)
	if err != nil {
		return nil, host.Work{}, err
	}
	after := server.Info(tb)
	if err = each(parties, func(p party) error { return p.tell("stop") }); err == nil {
		_, err = gather(parties, work.EventDone)
	}
	return values, after.Since(before, sends(parties)), err
}

func sends(parties []party) []string {
	var all []string
	for _, p := range parties {
		all = append(all, p.entrant.Contestant.Sends...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func each(parties []party, do func(party) error) error {
	var errs []error
	for _, p := range parties {
		errs = append(errs, do(p))
	}
	return errors.Join(errs...)
}

func gather(parties []party, event string) ([]work.Values, error) {
	values := make([]work.Values, len(parties))
	var errs []error
	for i, p := range parties {
		e, err := p.await(event, time.Duration(p.spec.Warmup+p.spec.Duration)*time.Millisecond)
		values[i] = e.Values
		errs = append(errs, err)
	}
	return values, errors.Join(errs...)
}

func combine(parties []party, all []work.Values, w host.Work) work.Values {
	v := all[0]
	if len(all) > 1 {
		v = together(parties, all)
	}
	seconds := w.Lasted.Seconds()
	if r, ok := v[work.Rate]; ok {
		// The server and the workers count over different intervals, so this uses rates.
		count := r * seconds
		v[Busy] = micros(w.Busy) / count
		v[Requests] = w.Requests / count
		v[RedisCPU] = micros(w.CPU) / count
	}
	v[RequestRate] = w.Requests / seconds
	v[RedisLoad] = 100 * w.CPU.Seconds() / seconds
	return v.Known()
}

// together takes the median of the medians and the maximum of the other times.
func together(parties []party, all []work.Values) work.Values {
	v := work.Values{}
	var ours float64
	var counts, middles []float64
	for i, x := range all {
		v[work.Count] += x[work.Count]
		v[work.Rate] += x[work.Rate]
		if parties[i].entrant.Contestant.Role == "own" {
			ours += x[work.Count]
		}
		v[work.P99] = max(v[work.P99], x[work.P99])
		v[work.Longest] = max(v[work.Longest], x[work.Longest])
		counts, middles = append(counts, x[work.Count]), append(middles, x[work.P50])
	}
	v[work.P50] = stats.Median(middles)
	s := stats.Summarize(counts)
	v[Most], v[Least] = 100*s.Max/v[work.Count], 100*s.Min/v[work.Count]
	v[Ours] = 100 * ours / v[work.Count]
	return v
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// patience is how much longer than its spec a worker may take.
const patience = 90 * time.Second

const (
	// restMost is the longest wait for the workers to use at most 1/restShare of one processor.
	restMost  = 10 * time.Second
	restLook  = 200 * time.Millisecond
	restShare = 10
)

// A session must not be used concurrently.
type session struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	encoder *json.Encoder
	used    bool
}

func startSession(l *host.Launcher, command []string, cpus []int) (*session, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the command is one of our workers
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

// errWork means that the work failed and the worker is still usable.
var errWork = errors.New("worker")

func (s *session) tell(order any) error { return s.encoder.Encode(order) }

func (s *session) await(want string, within time.Duration) (work.Event, error) {
	late := time.AfterFunc(within+patience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	var e work.Event
	if err := s.out.Decode(&e); err != nil {
		return e, fmt.Errorf("the worker exited instead of being %s: %w", want, err)
	}
	if e.Error != "" {
		return e, fmt.Errorf("%w: %s", errWork, e.Error)
	}
	if e.Event != want {
		return e, fmt.Errorf("the worker is %s instead of %s", e.Event, want)
	}
	return e, nil
}

// calm waits for background work such as compilation to finish. It returns false on a timeout.
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

func (s *session) close() {
	_ = host.Wake(s.cmd.Process) // if this fails, the worker is killed below
	_ = s.in.Close()
	late := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_ = s.cmd.Wait()
}
