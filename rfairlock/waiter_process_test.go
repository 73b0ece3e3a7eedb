package rfairlock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// runs is how many locks are tried side by side.
const runs = 20

// The process's waits are short, so that a place that is not kept is lost soon.
const (
	shortWait = 15 * time.Second
	shortPoll = 5 * time.Second
)

// waiterURL makes the test binary wait in queues, as another process.
const waiterURL = "RFAIRLOCK_TEST_WAITER_URL"

func init() {
	roles[waiterURL] = func(url string) {
		fmt.Println(runWaiter(url))
		os.Exit(1)
	}
}

// runWaiter waits for locks until the process is killed, or its parent is gone. A line
// says how many are to wait for each lock, and for which. It prints the waiters
// that it evicts.
func runWaiter(url string) error {
	client, err := redlatch.Open(context.Background(), url, redlatch.WithObserver(redlatch.Observer{Evicted: printEviction}),
		redlatch.WithFairWaitTimeout(shortWait), redlatch.WithPollCap(shortPoll))
	if err != nil {
		return err
	}
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		deep, err := strconv.Atoi(words[0])
		if err != nil {
			return err
		}
		for _, name := range words[1:] {
			l := rfairlock.New(client, name)
			for range deep {
				go func() { _, _ = l.Lock(context.Background()) }() // the queue shows how it ends
			}
		}
	}
}

// printEviction prints a waiter that the process evicts.
func printEviction(e redlatch.Evicted) { fmt.Println("evicted", e.Name, e.Owner) }

// startWaiter starts a process that waits in queues on command.
func startWaiter(t *testing.T, url string) *process {
	t.Helper()
	return start(t, waiterURL+"="+url)
}

// enter makes so many of a process stand in each queue, and returns when they do,
// and listen.
func (q *queues) enter(t *testing.T, p *process, deep int) {
	t.Helper()
	want := len(queueOf(t, q.srv, q.names[0])) + deep
	q.tell(t, p, deep)
	q.await(t, want)
}

func (q *queues) tell(t *testing.T, p *process, deep int) {
	t.Helper()
	require.NoError(t, p.say(strconv.Itoa(deep)+" "+strings.Join(q.names, " ")))
}

// queues are fair locks side by side, held by a client of the test.
type queues struct {
	srv   redistest.Target
	names []string
	holds []*rlock.Hold
}

func newQueues(t *testing.T, srv redistest.Target, n int) *queues {
	t.Helper()
	return heldBy(t, srv, connect(t, srv.URL()), n, rlock.WithLease(time.Hour))
}

func heldBy(t *testing.T, srv redistest.Target, holder *redlatch.Client, n int, opts ...rlock.Option) *queues {
	t.Helper()
	q := &queues{srv: srv}
	for range n {
		name := redistest.Key(t)
		q.names = append(q.names, name)
		q.holds = append(q.holds, take(t, rfairlock.New(holder, name), opts...))
	}
	return q
}

// await waits until each queue has so many waiters, and all listen.
func (q *queues) await(t *testing.T, want int) {
	t.Helper()
	for _, name := range q.names {
		until(t, time.Minute, "all are queued and listen", func() bool {
			queue := queueOf(t, q.srv, name)
			return len(queue) == want && allListen(t, q.srv, name, queue)
		})
	}
}

func allListen(t *testing.T, srv redistest.Target, name string, queue []string) bool {
	t.Helper()
	for _, owner := range queue {
		if listeners(t, srv, name, owner) == 0 {
			return false
		}
	}
	return true
}

// join makes one caller of a client wait in each queue, behind the waiters
// that are there.
func (q *queues) join(t *testing.T, client *redlatch.Client) []*waiter {
	t.Helper()
	want := len(queueOf(t, q.srv, q.names[0])) + 1
	all := q.begin(t, client)
	q.await(t, want)
	return all
}

func (q *queues) begin(t *testing.T, client *redlatch.Client) []*waiter {
	t.Helper()
	all := make([]*waiter, len(q.names))
	for i, name := range q.names {
		all[i] = await(t.Context(), rfairlock.New(client, name))
	}
	return all
}

// release frees all locks, as their holder does.
func (q *queues) release(t *testing.T) {
	t.Helper()
	for _, hold := range q.holds {
		require.NoError(t, hold.Unlock())
	}
}

// vanish frees all locks without a word, as if their leases were over.
func (q *queues) vanish(t *testing.T) {
	t.Helper()
	for _, name := range q.names {
		q.srv.Do(t, "DEL", name)
	}
}

// takenWithin holds that all have the locks so long after a moment, and frees them.
func takenWithin(t *testing.T, all []*waiter, since time.Time, bound time.Duration) {
	t.Helper()
	var last time.Duration
	for _, w := range all {
		require.NoError(t, w.acquired(t, max(time.Until(since)+bound, 0)+soon).Unlock())
		last = max(last, w.at.Sub(since))
	}
	t.Logf("%d locks were taken, the last after %v", len(all), last.Round(time.Millisecond))
	require.LessOrEqual(t, last, bound)
}
