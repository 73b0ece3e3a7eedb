package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

type job interface {
	begin()
	end() Values
	close() error
}

type common struct {
	cancel   context.CancelFunc
	done     sync.WaitGroup
	failed   failure
	counting atomic.Bool
	times    stats.Histogram
	since    usage
}

// start runs f in a goroutine. cancel must make f return.
func (c *common) start(f func() error) {
	c.done.Go(func() {
		if err := f(); err != nil {
			c.failed.set(err)
		}
	})
}

func (c *common) begin() {
	c.since = now()
	c.counting.Store(true)
}

func (c *common) describe(v Values) Values {
	v[P50], v[P99] = micros(c.times.Quantile(0.5)), micros(c.times.Quantile(0.99))
	v[Longest] = micros(c.times.Max())
	return v
}

func (c *common) finish(closers ...func() error) error {
	c.cancel()
	c.done.Wait()
	err := c.failed.get()
	for _, closer := range closers {
		err = errors.Join(err, closer())
	}
	return err
}

type failure struct{ err atomic.Pointer[error] }

func (f *failure) set(err error) { f.err.CompareAndSwap(nil, &err) }

func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

type usage struct {
	at      time.Time
	cpu     time.Duration
	mallocs uint64
}

func now() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{at: time.Now(), cpu: host.OwnCPUTime(), mallocs: m.Mallocs}
}

func (u usage) per(count float64) Values {
	n := now()
	return Values{
		Count:  count,
		Rate:   count / n.at.Sub(u.at).Seconds(),
		Allocs: float64(n.mallocs-u.mallocs) / count,
		CPU:    micros(n.cpu-u.cpu) / count,
	}
}

// resting is like per, but omits the rate and returns CPU time and allocations per second.
func (u usage) resting(count float64) Values {
	v := u.per(count)
	delete(v, Rate)
	v[CPU] /= time.Since(u.at).Seconds()
	v[Allocs] /= time.Since(u.at).Seconds()
	return v
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Serve runs the specs that it reads from in, until the end of the input.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := server{in: json.NewDecoder(in), out: json.NewEncoder(out)}
	for {
		var spec Spec
		if err := s.in.Decode(&spec); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.measure(ctx, spec); err != nil {
			return err
		}
	}
}

type server struct {
	in  *json.Decoder
	out *json.Encoder
}

// measure sends work errors to the runner and returns protocol errors.
func (s server) measure(ctx context.Context, spec Spec) error {
	j, err := open(ctx, spec)
	if err != nil {
		return s.done(err)
	}
	time.Sleep(spec.warmup())
	if err := s.out.Encode(Event{Event: EventReady}); err != nil {
		return err
	}
	if err := s.order(orderGo); err != nil {
		return errors.Join(err, j.close())
	}
	profiled, err := profile(spec.Profile)
	if err != nil {
		return errors.Join(err, j.close())
	}
	j.begin()
	time.Sleep(spec.duration())
	if err := profiled(); err != nil {
		return errors.Join(err, j.close())
	}
	if err := s.out.Encode(Event{Event: EventMeasured, Values: j.end().Known()}); err != nil {
		return err
	}
	err = s.order(orderStop)
	if ended := j.close(); err == nil {
		err = s.done(ended)
	}
	return err
}

func (s server) done(err error) error {
	e := Event{Event: EventDone}
	if err != nil {
		e.Error = err.Error()
	}
	return s.out.Encode(e)
}

func (s server) order(want string) error {
	var got string
	if err := s.in.Decode(&got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: %q instead of %q", errOrder, got, want)
	}
	return nil
}

func open(ctx context.Context, spec Spec) (job, error) {
	c, err := contest.Find(spec.Contestant)
	if err != nil {
		return nil, err
	}
	if c.Java {
		return nil, fmt.Errorf("work: %s needs a JVM", c.Name)
	}
	if c.Open == nil {
		return startPipeline(ctx, spec)
	}
	switch spec.Kind {
	case Pairs, Turns:
		return startTurns(ctx, c, spec)
	case Wakeup:
		return startWakeups(ctx, c, spec)
	case Idle:
		return startIdle(ctx, c, spec)
	case Watchdog:
		return startWatchdog(ctx, c, spec)
	default:
		return nil, fmt.Errorf("work: no kind %q", spec.Kind)
	}
}

func profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file) //nolint:gosec // the user chose the file
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
