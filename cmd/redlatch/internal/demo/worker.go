package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	workerCommand = "__demo-worker"
	stopTimeout   = 5 * time.Second
	grace         = 5 * time.Second
)

type kind string

const (
	ready    kind = "ready"    // connected; Visit is the client's ID
	waiting  kind = "waiting"  // is calling Lock
	acquired kind = "acquired" // begins Visit; Wait is how long it waited
	found    kind = "found"    // found the marker Found on entering or leaving
	stalled  kind = "stalled"  // read the counter in Visit and waits to be killed
	released kind = "released" // wrote its round in Visit
	lost     kind = "lost"
	gone     kind = "gone" // exited; Text is the error, if any; the parent also creates this event
)

type event struct {
	Kind  kind          `json:"kind"`
	At    time.Time     `json:"at"`
	Visit string        `json:"visit,omitempty"` // OWNER#NUMBER
	Found string        `json:"found,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"`
	Text  string        `json:"text,omitempty"`

	// The visit's place in the journal, counted from 1, and the queue at the time of its release.
	Round int64    `json:"round,omitempty"`
	Queue []string `json:"queue,omitempty"`
}

// workerConfig is the first line of input. Each later line makes the process stall.
type workerConfig struct {
	ID     int              `json:"id"`
	Redis  connect.Settings `json:"redis"`
	Prefix string           `json:"prefix"`
}

// keyLife is the TTL, in seconds, of keys that the demo cannot delete.
const keyLife = 600

type keys [6]string

// Indexes into keys.
const (
	insideKey = iota // the marker, which is the current visit or empty
	counterKey
	journalKey  // a list with the process and the new counter of each round
	queueKey    // the lock's queue
	timeoutsKey // the queue's deadlines
	lockKey
)

func keysOf(prefix string) keys {
	lock := prefix + ":lock"
	return keys{prefix + ":inside", prefix + ":counter", prefix + ":journal", codec.QueueKey(lock), codec.TimeoutKey(lock), lock}
}

const (
	enterScript = `local was = redis.call('GETSET', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return {was or '', redis.call('GET', KEYS[2]) or '0'}`

	leaveScript = `redis.call('SET', KEYS[2], ARGV[1])
local round = redis.call('RPUSH', KEYS[3], ARGV[3] .. ' ' .. ARGV[1])
local marker, queue = redis.call('GETSET', KEYS[1], ''), redis.call('LRANGE', KEYS[4], 0, -1)
for i = 1, 5 do
    redis.call('EXPIRE', KEYS[i], ARGV[2])
end
return {round, marker or '', queue}`
)

func (k *keys) eval(c redis.Conn, script string, args ...any) ([]any, error) {
	return redis.Values(c.Do("EVAL", redis.Args{}.Add(script, len(k)).AddFlat(k[:]).Add(args...)...))
}

type worker struct {
	cfg    workerConfig
	keys   keys
	redis  *connect.Server
	out    io.Writer // receives each event in one Write
	stall  atomic.Bool
	visits atomic.Int64
}

// work returns when its input ends because the parent has closed it or died.
func work(in io.Reader, out io.Writer) error {
	// Ctrl-C reaches all processes attached to the terminal, but only the parent should handle it.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	w := &worker{out: out}
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return fmt.Errorf("%s is started by redlatch demo only", workerCommand)
	}
	err := json.Unmarshal(lines.Bytes(), &w.cfg)
	if err != nil {
		return err
	}
	w.keys = keysOf(w.cfg.Prefix)
	if w.redis, err = connect.New(w.cfg.Redis); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for lines.Scan() {
			w.stall.Store(true)
		}
		cancel(context.Canceled)
		time.Sleep(stopTimeout)
		os.Exit(1) // exit even if the server does not reply
	}()
	w.contend(ctx, cancel)
	err = context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	w.report(&event{Kind: gone, Text: err.Error()})
	return err
}

func (w *worker) contend(ctx context.Context, fail context.CancelCauseFunc) {
	client, err := w.redis.Open(ctx, redlatch.WithWatchdogTimeout(lease), redlatch.WithDeadWaiterGrace(grace))
	if err != nil {
		fail(err)
		return
	}
	defer func() { _ = client.Close() }()
	w.report(&event{Kind: ready, Visit: client.ID().String()})
	var all sync.WaitGroup
	lock := rfairlock.New(client, w.keys[lockKey])
	for range workers {
		all.Go(func() {
			c, err := w.redis.Dial(ctx)
			if err != nil {
				fail(err)
				return
			}
			defer func() { _ = c.Close() }()
			for ; ctx.Err() == nil; think(ctx) {
				if err := w.round(ctx, c, lock); err != nil {
					fail(err)
				}
			}
		})
	}
	all.Wait()
}

func (w *worker) round(ctx context.Context, c redis.Conn, lock *rlock.Lock) error {
	w.report(&event{Kind: waiting})
	asked := time.Now()
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	visit := fmt.Sprintf("%s#%d", hold.Owner(), w.visits.Add(1))
	w.report(&event{Kind: acquired, Visit: visit, Wait: time.Since(asked)})
	held := hold.Context(context.WithoutCancel(ctx)) // finish the round after ctx has ended
	err = w.inside(ctx, held, c, visit)
	if hold.Unlock() != nil {
		w.report(&event{Kind: lost, Visit: visit})
	}
	return err
}

func (w *worker) inside(ctx, held context.Context, c redis.Conn, visit string) error {
	var marker string
	var n, round int64
	was, err := w.keys.eval(c, enterScript, visit, keyLife)
	if err == nil {
		_, err = redis.Scan(was, &marker, &n)
	}
	if err != nil {
		return err
	}
	w.checkMarker(marker, "")
	think(held)
	if w.stall.CompareAndSwap(true, false) {
		w.report(&event{Kind: stalled, Visit: visit})
		<-ctx.Done() // it is killed here unless the demo ends first
	}
	if isLost(held) {
		return nil // do not write, because another worker may hold the lock; Unlock returns the error
	}
	var queue []string
	is, err := w.keys.eval(c, leaveScript, n+1, keyLife, w.cfg.ID)
	if err == nil {
		_, err = redis.Scan(is, &round, &marker, &queue)
	}
	if err != nil {
		return err
	}
	w.checkMarker(marker, visit)
	w.report(&event{Kind: released, Visit: visit, Round: round, Queue: queue})
	return nil
}

// isLost is correct even after the process was paused, because Err reads the clock.
func isLost(held context.Context) bool { return held.Err() != nil }

func (w *worker) checkMarker(marker, want string) {
	if marker != want {
		w.report(&event{Kind: found, Found: marker})
	}
}

func (w *worker) report(e *event) {
	e.At = time.Now()
	_ = json.NewEncoder(w.out).Encode(e)
}

func think(ctx context.Context) {
	select {
	case <-time.After(5*time.Millisecond + rand.N(10*time.Millisecond)): //nolint:gosec // no secret
	case <-ctx.Done():
	}
}
