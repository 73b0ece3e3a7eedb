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
