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

// worker is the process.
type worker struct {
	cfg     Config
	log     *history.Writer
	sampler *sampler
	auditor *auditor
	stalls  *stallWatch
	group   cancelGroup
	ids     atomic.Int64
	seeds   atomic.Uint64
	current atomic.Pointer[redlatch.Client]
	round   int // written while no caller is at work
}

// Serve executes the lines of in until it ends or has quit, and answers on out. Exit ends
// the process.
func Serve(cfg Config, in io.Reader, out io.Writer) error {
	log, err := history.Create(cfg.History, cfg.Process)
	if err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	w := &worker{cfg: cfg, log: log, auditor: openAuditor(&cfg, log), sampler: openSampler(log), stalls: openStallWatch(log)}
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
	return nil // the parent is gone
}

// ready makes a client and makes it the current one.
func (w *worker) ready() error {
	client, err := w.cfg.client()
	if err != nil {
		return err
	}
	w.log.Write(history.Record{Kind: history.Life, Owner: client.ID().String()})
	w.current.Store(client)
	return nil
}

// begin sets all to work and returns what brings them to rest.
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

// random returns a source of choices that no other has.
func (w *worker) random() *rand.Rand {
	return rand.New(rand.NewPCG(w.cfg.Seed, w.seeds.Add(1))) //nolint:gosec // choices to be repeated, no secrets
}

// readers is the share of the sessions with a read/write lock that read.
const readers = 0.7

// caller goes from session to session.
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
		select { // a client that refuses everything at once must not keep a processor busy
		case <-ctx.Done():
		case <-time.After(w.cfg.Habits.Rest + s.between(time.Millisecond, 20*time.Millisecond)):
		}
	}
}

// replace puts a new client in the place of the old one, now and then.
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
			panic(err) // the options were good before
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

// close ends a client.
func (w *worker) close(op string, client *redlatch.Client, wait time.Duration, f func(*redlatch.Client) error) {
	id := w.nextID()
	w.log.Write(history.Record{Kind: history.Call, ID: id, Op: op, Wait: wait + overhead})
	err := f(client)
	w.log.Write(history.Record{Kind: history.Return, ID: id, Err: Class(err)})
	w.log.Write(history.Record{Kind: history.LifeOver, Owner: client.ID().String()})
}

// end closes everything and returns how many goroutines are left, when it has not
// become less for a while.
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
	// stallTick is how often it is looked whether the process runs, stallLeast how late a look
	// must be to be written down.
	stallTick  = 50 * time.Millisecond
	stallLeast = 500 * time.Millisecond
)

// stallWatch writes down when no goroutine of the process ran: the machine was busy, or stood
// still itself. It touches nothing of what is tested, so that this cannot delay it.
type stallWatch struct {
	log  *history.Writer
	quit chan struct{}
	done chan struct{}
}

func openStallWatch(log *history.Writer) *stallWatch {
	s := &stallWatch{log: log, quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *stallWatch) close() {
	close(s.quit)
	<-s.done
}

func (s *stallWatch) run() {
	defer close(s.done)
	tick := time.NewTimer(stallTick)
	defer tick.Stop()
	for {
		before := history.Now()
		select {
		case <-tick.C:
		case <-s.quit:
			return
		}
		if now := history.Now(); now-before > stallTick+stallLeast {
			s.log.Write(history.Record{T: before + stallTick, Kind: history.Stop, Op: history.Stalled, Until: now})
		}
		tick.Reset(stallTick)
	}
}

const (
	// samplePause is how often every hold is looked at.
	samplePause = 20 * time.Millisecond
	// minMove is how far a deadline must have moved to be worth a line, and staleness how old
	// the last line may be.
	minMove   = 100 * time.Millisecond
	staleness = 300 * time.Millisecond
)

// held is what a hold of any kind says of itself.
type held interface {
	Err() error
	Remaining() time.Duration
	Context(parent context.Context) context.Context
}

// sampledHold is a hold as its session knows it.
type sampledHold struct {
	id      string
	hold    held
	lock    *rlock.Hold      // it, of a lock
	permits *rsemaphore.Hold // it, of permits with ids
	reads   bool             // is a reader's
	field   string           // its owner as the lock's hash has it
	lease   time.Duration

	// Of the sampler, guarded by the sampler's mu.
	last, until history.Time // the last sample
	wroteAt     history.Time
	wrote       history.Time
}

// sampler samples the live holds.
type sampler struct {
	log  *history.Writer
	quit chan struct{}
	done chan struct{}

	mu    sync.Mutex // guards what follows, and the samples of holds
	holds map[*sampledHold]struct{}
}

func openSampler(log *history.Writer) *sampler {
	s := &sampler{log: log, quit: make(chan struct{}), done: make(chan struct{}), holds: map[*sampledHold]struct{}{}}
	go s.run()
	return s
}

func (s *sampler) close() {
	close(s.quit)
	<-s.done
}

func (s *sampler) run() {
	defer close(s.done)
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sampleAll()
		case <-s.quit:
			return
		}
	}
}

// add begins to sample a hold.
func (s *sampler) add(h *sampledHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h] = struct{}{}
	s.sample(h)
}

// remove ends it: the hold is about to be given up.
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

// sample is called with b.mu held. The order matters: the time comes first, so that
// what is written is never more than the hold says.
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

// cancelGroup are callers that are cancelled all at once.
type cancelGroup struct {
	mu     sync.Mutex // guards what follows
	ctx    context.Context
	cancel context.CancelFunc
}

// context returns one that ends with the next scattering.
func (c *cancelGroup) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	return c.ctx
}

// cancelAll ends the contexts of all callers that have joined, before any of them can leave.
func (c *cancelGroup) cancelAll() {
	c.mu.Lock()
	cancel := c.cancel
	c.ctx, c.cancel = nil, nil
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// cancelAllIn does that after a time that is too short for a timer.
func (c *cancelGroup) cancelAllIn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		continue
	}
	c.cancelAll()
}
