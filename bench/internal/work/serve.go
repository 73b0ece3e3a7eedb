package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
)

// job is a measurement under way.
type job interface {
	// begin starts to count; end tells what was counted and may be called once.
	begin()
	end() Values
	// close ends the work and says what went wrong in it.
	close() error
}

// Serve does what in asks for until in ends, and writes what came of it to out.
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

// measure goes through one conversation. An error of the work is reported to the runner; an
// error of the conversation is returned.
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
	if err := s.out.Encode(Event{Event: EventMeasured, Values: j.end().known()}); err != nil {
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

// open starts the work of a spec.
func open(ctx context.Context, spec Spec) (job, error) {
	c, err := contest.Find(spec.Contestant)
	if err != nil {
		return nil, err
	}
	if c.Java {
		return nil, fmt.Errorf("work: %s needs a JVM", c.Name)
	}
	if c.Open == nil {
		return startPipeline(spec)
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
