package mixed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// turnLease is the lease of a worker's locks, and therefore the longest sleep of a worker that misses a message.
	turnLease = 3 * time.Second
	// turnTime is the time for which a worker holds a lock.
	turnTime = 3 * time.Millisecond
	// pause is a worker's pause after a turn. Locks must sometimes be free, so that a worker that missed a message and
	// polls when a lease expires can acquire a plain lock.
	pause = 20 * time.Millisecond
	// hung is the time limit for a Redisson call, which acquires the lock within turnLease or never.
	hung = 10 * turnLease
)

// turn is a time in which a worker held a lock, by the machine's clock.
type turn struct {
	who      string
	from, to time.Time
	reads    bool // concurrently with other readers
}

// worker acquires one lock repeatedly.
type worker struct {
	who     string
	library string
	lock    string
	// theirs reports whether the library is Redisson.
	theirs bool
	// once acquires the lock, holds it briefly, and releases it. The turn counts if it began, even
	// with an error.
	once func(ctx context.Context) (turn, error)
}

func goWorker(g *goParty, l target) worker {
	w := worker{who: g.title() + ", " + l.kind.Name + " " + l.name, library: g.library(), lock: l.name}
	w.once = func(ctx context.Context) (turn, error) {
		hold, err := g.lock(l).Lock(ctx, rlock.WithWatchdog(turnLease))
		if err != nil {
			return turn{}, err
		}
		had := turn{who: w.who, from: time.Now(), reads: l.kind.Name == locksuite.Reader.Name}
		ends := had.from.Add(hold.Remaining())
		select {
		case <-time.After(turnTime):
		case <-hold.Context(context.Background()).Done():
		}
		had.to = time.Now()
		if ends.Before(had.to) {
			had.to = ends // because the machine stalled
		}
		return had, hold.Unlock()
	}
	return w
}

// javaWorker returns a worker that uses a Redisson client on its own thread. Redisson does not notice a loss, so its
// turns end with the lease at the latest. It calls tryLock repeatedly, because a call to lock() that misses its message
// may never return.
func javaWorker(j *javaParty, l target) worker {
	l.thread = "-" + l.kind.Name + l.name
	try := peer.Command{"op": "tryLock", "wait": turnLease.Milliseconds(), "lease": turnLease.Milliseconds()}
	w := worker{who: j.title() + ", " + j.client + ", " + l.kind.Name + " " + l.name, library: j.library(), lock: l.name, theirs: true}
	w.once = func(context.Context) (turn, error) {
		locked, err := j.begin(l, try).Wait(2 * atMost)
		if err == nil && string(locked.Value) != "true" {
			err = redlatch.ErrNotAcquired
		}
		if err != nil {
			return turn{}, err
		}
		<-time.After(turnTime)
		freed, err := j.begin(l, peer.Command{"op": "unlock"}).Wait(2 * atMost)
		had := turn{who: w.who, from: locked.Ended(), to: locked.Ended().Add(turnLease), reads: l.kind.Name == locksuite.Reader.Name}
		if began := freed.Began(); !began.After(had.to) {
			had.to = began
		}
		return had, err
	}
	return w
}

// contenders are workers that acquire locks until they are stopped.
type contenders struct {
	t      *testing.T
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex        // guards the fields below
	turns  map[string][]turn // by lock
	count  map[string]int    // turns by worker
	last   map[string]time.Time
	calls  map[string]time.Time     // start of the current call of each Redisson worker
	asleep map[string]bool          // Redisson workers whose call took too long
	pauses map[string]time.Duration // longest pause between two turns of a worker, by library
	errs   map[string]int           // count of each error
}

// start runs workers until they are stopped or the test ends.
func start(t *testing.T, workers []worker) *contenders {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &contenders{
		t: t, cancel: cancel, turns: map[string][]turn{}, count: map[string]int{},
		last: map[string]time.Time{}, pauses: map[string]time.Duration{}, errs: map[string]int{},
		calls: map[string]time.Time{}, asleep: map[string]bool{},
	}
	for _, w := range workers {
		c.count[w.who], c.last[w.who] = 0, time.Now()
		if w.theirs {
			c.calls[w.who] = time.Now()
		}
		c.wg.Go(func() { c.work(ctx, w) })
	}
	t.Cleanup(cancel)
	return c
}

func (c *contenders) work(ctx context.Context, w worker) {
	for ctx.Err() == nil {
		had, err := w.once(ctx)
		c.note(w, had, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (c *contenders) note(w worker, had turn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.theirs {
		c.calls[w.who] = time.Now()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.errs[w.library+": "+class(err)]++
	}
	if had.from.IsZero() {
		return
	}
	c.turns[w.lock] = append(c.turns[w.lock], had)
	c.count[w.who]++
	c.pauses[w.library] = max(c.pauses[w.library], had.from.Sub(c.last[w.who]))
	c.last[w.who] = had.from
}

// class returns the kind of an error.
func class(err error) string {
	var thrown *peer.Exception
	if errors.As(err, &thrown) {
		return thrown.Class
	}
	for _, known := range []error{redlatch.ErrNotSent, redlatch.ErrUncertain, redlatch.ErrLost, redlatch.ErrNotHeld, redlatch.ErrNotAcquired} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

// progress waits until each worker has had another turn, and returns how long this took. After a slot has been moved, a
// Redisson call sometimes hangs. This is logged, and tolerated as long as other Redisson calls return.
func (c *contenders) progress() time.Duration {
	c.t.Helper()
	began := time.Now()
	c.mu.Lock()
	before := maps.Clone(c.count)
	c.mu.Unlock()
	require.EventuallyWithT(c.t, func(ct *assert.CollectT) {
		c.mu.Lock()
		defer c.mu.Unlock()
		theirs := false // whether a Redisson worker made progress
		for who, had := range c.count {
			in, foreign := c.calls[who]
			theirs = theirs || foreign && had > before[who]
			if had > before[who] || foreign && c.sleeps(who, in) {
				continue
			}
			assert.Fail(ct, "no turn", "%s makes no progress", who)
		}
		assert.True(ct, theirs, "no worker of Redisson makes progress")
	}, 2*atMost, 5*time.Millisecond)
	ended := time.Now()
	return ended.Sub(began).Round(time.Millisecond)
}

// sleeps reports whether a worker's call takes too long, and logs it once.
func (c *contenders) sleeps(who string, since time.Time) bool {
	if time.Now().Before(since.Add(hung)) {
		return false
	}
	if !c.asleep[who] {
		c.asleep[who] = true
		c.t.Logf("NOT JUDGED: %s: its call has not returned for %v", who, hung)
	}
	return true
}

// stop stops the workers and returns how often two of them held a lock concurrently.
func (c *contenders) stop(what string) int {
	c.t.Helper()
	c.cancel()
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(3 * atMost):
		require.FailNow(c.t, "a call does not end", what)
	}
	twice, sum := 0, 0
	for lock, turns := range c.turns {
		for _, example := range overlaps(turns) {
			c.t.Logf("%s: %s had two holders: %s", what, lock, example)
			twice++
		}
		sum += len(turns)
	}
	c.t.Logf("%s: %d turns, %d with two holders, longest pause of a worker %v, errors %v", what, sum, twice, c.pauses, c.errs)
	return twice
}

// overlaps describes each turn that began before an earlier one ended, unless both read.
func overlaps(turns []turn) (examples []string) {
	sorted := slices.SortedFunc(slices.Values(turns), func(a, b turn) int { return a.from.Compare(b.from) })
	var read, other turn // the ones that ended last
	for _, x := range sorted {
		before := other
		if !x.reads && read.to.After(other.to) {
			before = read
		}
		if x.from.Before(before.to) {
			examples = append(examples, fmt.Sprintf("%s, until %v, %s, from %v", before.who, before.to, x.who, x.from))
		}
		last := &other
		if x.reads {
			last = &read
		}
		if x.to.After(last.to) {
			*last = x
		}
	}
	return examples
}

// figures contains the times for each line of a table. It is not safe for concurrent use.
type figures struct {
	lines []string // in order of first use
	times map[string][]time.Duration
}

// add adds a time to a line.
func (f *figures) add(line string, d time.Duration) {
	if f.times == nil {
		f.times = map[string][]time.Duration{}
	}
	if f.times[line] == nil {
		f.lines = append(f.lines, line)
	}
	f.times[line] = append(f.times[line], d)
}

// String returns the distribution of each line in milliseconds, below a header.
func (f *figures) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // to memory
	row("", "times", "p50", "p90", "p99", "max")
	for _, line := range f.lines {
		all := slices.Sorted(slices.Values(f.times[line]))
		row(line, strconv.Itoa(len(all)), share(all, 50), share(all, 90), share(all, 99), share(all, 100))
	}
	_ = w.Flush() // to memory
	return b.String()
}

// share returns a percentile of sorted times.
func share(sorted []time.Duration, percent int) string {
	d := sorted[(len(sorted)*percent+99)/100-1]
	return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64)
}
