//go:build linux

package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

type worker struct {
	cfg     Config
	log     *history.Writer
	sampler *sampler
	auditor *auditor
	stalls  *loop
	group   cancelGroup
	ids     atomic.Int64
	seeds   atomic.Uint64
	current atomic.Pointer[redlatch.Client]
	round   int // written while no caller is at work
}

// Serve executes the commands that it reads from in until the end of the input or the command quit.
func Serve(cfg Config, in io.Reader, out io.Writer) error {
	log, err := history.Create(cfg.History, cfg.Process)
	if err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	w := &worker{cfg: cfg, log: log, auditor: openAuditor(&cfg, log), sampler: openSampler(log), stalls: watchStalls(log)}
	if err := w.ready(); err != nil {
		return err
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	say("ready")
	rest := func() {}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		command, round, _ := strings.Cut(lines.Text(), " ")
		switch command {
		case "go":
			if w.round, err = strconv.Atoi(round); err != nil {
				return err
			}
			rest = w.begin()
		case "drain":
			rest()
			rest = func() {}
			say("drained")
		case "exit":
			w.log.Write(history.Record{Kind: history.Kill})
			os.Exit(0)
		case "quit":
			rest()
			say("bye %d", w.end()-before)
			return nil
		}
	}
	return nil
}

func (w *worker) ready() error {
	client, err := w.cfg.client()
	if err != nil {
		return err
	}
	w.log.Write(history.Record{Kind: history.Life, Owner: client.ID().String()})
	w.current.Store(client)
	return nil
}

func (w *worker) begin() (rest func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range w.cfg.Callers {
		all.Go(func() { w.caller(ctx) })
	}
	if w.cfg.Habits.Replace {
		all.Go(func() { w.replace(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func (w *worker) random() *rand.Rand {
	return rand.New(rand.NewPCG(w.cfg.Seed, w.seeds.Add(1))) //nolint:gosec // choices to be repeated, no secrets
}

const readers = 0.7

func (w *worker) caller(ctx context.Context) {
	rnd := w.random()
	for ctx.Err() == nil {
		s := session{w: w, ctx: ctx, rnd: rnd, key: w.cfg.Keys[rnd.IntN(len(w.cfg.Keys))]}
		s.client = w.current.Load()
		if s.key.Permits > 0 {
			s.key.Name = s.key.At(w.round)
			(&permitSession{session: s, n: 1 + rnd.IntN(min(s.key.Permits, mostAtOnce))}).run()
		} else {
			s.reads = s.key.ReadWrite && s.chance(readers)
			s.lock = s.key.Lock(s.client, s.reads)
			s.run()
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.cfg.Habits.Rest + s.between(time.Millisecond, 20*time.Millisecond)):
		}
	}
}

func (w *worker) replace(ctx context.Context) {
	rnd := w.random()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5*time.Second + time.Duration(rnd.Int64N(int64(15*time.Second)))):
		}
		old := w.current.Load()
		if err := w.ready(); err != nil {
			panic(err)
		}
		if rnd.IntN(2) == 0 {
			w.close("close", old, 0, (*redlatch.Client).Close)
			continue
		}
		const patience = 5 * time.Second
		w.close("shutdown", old, patience, func(c *redlatch.Client) error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return c.Shutdown(ctx)
		})
	}
}

func (w *worker) close(op string, client *redlatch.Client, wait time.Duration, f func(*redlatch.Client) error) {
	id := w.nextID()
	w.log.Write(history.Record{Kind: history.Call, ID: id, Op: op, Wait: wait + overhead})
	err := f(client)
	w.log.Write(history.Record{Kind: history.Return, ID: id, Err: Class(err)})
	w.log.Write(history.Record{Kind: history.LifeOver, Owner: client.ID().String()})
}

func (w *worker) end() (left int) {
	w.close("close", w.current.Load(), 0, (*redlatch.Client).Close)
	w.sampler.close()
	w.stalls.close()
	w.auditor.close()
	left = runtime.NumGoroutine()
	for range 50 {
		left = min(left, runtime.NumGoroutine())
		time.Sleep(10 * time.Millisecond)
	}
	return left
}

const (
	stallTick  = 50 * time.Millisecond
	stallLeast = 500 * time.Millisecond
)

type loop struct{ quit, done chan struct{} }

func every(pause time.Duration, do func()) *loop {
	l := &loop{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		tick := time.NewTimer(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-l.quit:
				return
			}
			do()
			tick.Reset(pause)
		}
	}()
	return l
}

func (l *loop) close() {
	close(l.quit)
	<-l.done
}

// watchStalls does not share any state with the code under test, so that the code cannot delay it.
func watchStalls(log *history.Writer) *loop {
	before := history.Now()
	return every(stallTick, func() {
		if now := history.Now(); now-before > stallTick+stallLeast {
			log.Write(history.Record{T: before + stallTick, Kind: history.Stop, Op: history.Stalled, Until: now})
		}
		before = history.Now()
	})
}

const (
	samplePause = 20 * time.Millisecond
	// A sample is recorded if the deadline has moved by more than minMove or the last record is older than staleness.
	minMove   = 100 * time.Millisecond
	staleness = 300 * time.Millisecond
)

type held interface {
	Err() error
	Remaining() time.Duration
	Context(parent context.Context) context.Context
}

type sampledHold struct {
	id      string
	hold    held
	lock    *rlock.Hold
	permits *rsemaphore.Hold
	reads   bool
	field   string
	lease   time.Duration

	// Guarded by the sampler's mu.
	last, until history.Time
	wroteAt     history.Time
	wrote       history.Time
}

type sampler struct {
	*loop
	log *history.Writer

	mu    sync.Mutex // guards the fields below and the samples of holds
	holds map[*sampledHold]struct{}
}

func openSampler(log *history.Writer) *sampler {
	s := &sampler{log: log, holds: map[*sampledHold]struct{}{}}
	s.loop = every(samplePause, s.sampleAll)
	return s
}

func (s *sampler) add(h *sampledHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h] = struct{}{}
	s.sample(h)
}

func (s *sampler) remove(h *sampledHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

func (s *sampler) sampleAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.holds {
		s.sample(h)
	}
}

// sample is called with s.mu held. It reads the time first, so that a recorded hold never lasts longer than the hold
// itself reports.
func (s *sampler) sample(h *sampledHold) {
	at := history.Now()
	err := h.hold.Err()
	if err != nil {
		s.log.Write(history.Record{Kind: history.Over, Hold: h.id, Until: h.last, Err: Class(err)})
		delete(s.holds, h)
		return
	}
	until := at + h.hold.Remaining()
	h.last, h.until = at, max(h.until, until)
	if h.until > h.wrote+minMove || at > h.wroteAt+staleness {
		s.log.Write(history.Record{T: at, Kind: history.Valid, Hold: h.id, Until: h.until})
		h.wrote, h.wroteAt = h.until, at
	}
}

type cancelGroup struct {
	mu     sync.Mutex // guards the fields below
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *cancelGroup) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	return c.ctx
}

// cancelAll cancels the context of all calls that have joined the group, so that all of them are canceled before the
// first one returns.
func (c *cancelGroup) cancelAll() {
	c.mu.Lock()
	cancel := c.cancel
	c.ctx, c.cancel = nil, nil
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (c *cancelGroup) cancelAllIn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		continue
	}
	c.cancelAll()
}
