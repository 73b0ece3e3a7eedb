//go:build unix

package rfairlock_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

func (q *queues) tell(t *testing.T, p *process, deep int) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, deep, strings.Join(q.names, " "))
	require.NoError(t, err)
}

// queues are fair locks that a client of the test holds.
type queues struct {
	srv   redistest.Target
	names []string
}

func heldBy(t *testing.T, srv redistest.Target, holder *redlatch.Client, n int) *queues {
	t.Helper()
	q := &queues{srv: srv}
	for range n {
		name := redistest.Key(t)
		q.names = append(q.names, name)
		take(t, rfairlock.New(holder, name))
	}
	return q
}

// await waits until each queue has want subscribed waiters.
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

// stop pauses the process.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

// ordeal is four clients that wait in two hundred queues: three processes and the test itself, each
// behind its own proxy.
type ordeal struct {
	srv       *redistest.Server
	proxies   []*redistest.Proxy
	processes []*process
	sets      []*queues
	before    map[string][]string
	seen      *evictions
}

const parties = 4

// Each client is first in a quarter of the queues, second in another, and so on. A foreign waiter is
// last, so that a waiter that queues again is noticed.
func newOrdeal(t *testing.T) *ordeal {
	t.Helper()
	const each = 50
	o := &ordeal{srv: redistest.Start(t, redistest.WithArgs("--appendonly", "yes")), before: map[string][]string{}, seen: &evictions{}}
	holder := connect(t, o.srv.URL(), redlatch.WithWatchdogTimeout(10*time.Second), o.seen.observer())
	for range parties {
		o.proxies = append(o.proxies, redistest.NewProxy(t, o.srv.Addr()))
		o.sets = append(o.sets, heldBy(t, o.srv, holder, each))
	}
	for _, p := range o.proxies[1:] {
		o.processes = append(o.processes, start(t, waiterRole, p.URL()))
	}
	own := connect(t, o.proxies[0].URL(), o.seen.observer(),
		redlatch.WithFairWaitTimeout(shortWait), redlatch.WithPollCap(shortPoll))
	for turn := range parties {
		for i, q := range o.sets {
			if party := (i + turn) % parties; party > 0 {
				q.tell(t, o.processes[party-1], 1)
			} else {
				for _, name := range q.names {
					await(t.Context(), rfairlock.New(own, name))
				}
			}
		}
		for _, q := range o.sets {
			q.await(t, turn+1)
		}
	}
	for _, q := range o.sets {
		for _, name := range q.names {
			queueByHand(t, o.srv, name, foreignTail, time.Now().Add(time.Hour))
			o.before[name] = queueOf(t, o.srv, name)
		}
	}
	return o
}

// stopped pauses processes for d, and has a fault each second.
func (o *ordeal) stopped(t *testing.T, all []*process, d time.Duration, faults ...func()) {
	t.Helper()
	for _, p := range all {
		p.stop(t)
	}
	began := time.Now()
	for _, fault := range faults {
		<-time.After(time.Second)
		fault()
	}
	<-time.After(time.Until(began.Add(d)))
	for _, p := range all {
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	}
}

// settled waits until all waiters have subscribed again. A waiter without a subscription would count
// as dead after the grace.
func (o *ordeal) settled(t *testing.T) {
	t.Helper()
	for name := range o.before {
		until(t, soon, "all listen again", func() bool {
			queue := slices.DeleteFunc(queueOf(t, o.srv, name), func(owner string) bool { return owner == foreignTail })
			return len(queue) == parties && allListen(t, o.srv, name, queue)
		})
	}
}

// unchanged checks that no waiter was evicted or lost its place. A waiter whose connection broke
// during an attempt queues again, but as another owner.
func (o *ordeal) unchanged(t *testing.T, after string) {
	t.Helper()
	require.Empty(t, o.seen.reported(), after)
	doubts := 0
	for name, before := range o.before {
		queue := queueOf(t, o.srv, name)
		kept := slices.DeleteFunc(before, func(owner string) bool { return !slices.Contains(queue, owner) })
		require.Equal(t, kept, queue[:len(kept)], after)
		doubts += len(queue) - len(kept)
		o.before[name] = queue
	}
	t.Logf("%s: %d of %d places given up in doubt", after, doubts, parties*len(o.before))
	require.Less(t, doubts, parties*len(o.before)/2, "too few are left")
}

// A process that is paused, or loses its connections or its server for a while, is alive.
func TestU25LiveWaitersKeepTheirQueueEntriesThroughFaults(t *testing.T) {
	testlevel.All(t, "several processes, 54 s")
	t.Parallel()
	o := newOrdeal(t)
	began := time.Now()
	one, two, three := o.processes[0:1], o.processes[1:2], o.processes[2:3]
	for _, fault := range []struct {
		what   string
		strike func()
	}{
		{"stopped for ten seconds, and others lose their connections", func() {
			o.stopped(t, one, 10*time.Second, o.proxies[0].Reset, o.proxies[2].Reset, o.proxies[3].Reset,
				func() { o.srv.KillClients(t, "normal") })
		}},
		{"the server comes back", o.srv.Restart},
		{"stopped for ten seconds, and another one cannot connect", func() {
			o.stopped(t, two, 10*time.Second,
				func() { o.proxies[1].Refuse(true); o.proxies[1].Reset() }, o.proxies[3].Reset, func() {}, func() {},
				func() { o.proxies[1].Refuse(false) })
		}},
		{"stopped, and without connections when it goes on", func() {
			o.stopped(t, three, 5*time.Second, o.proxies[3].Reset, o.srv.Restart)
		}},
		{"all stopped, and none with a connection", func() {
			o.stopped(t, o.processes, 5*time.Second, func() { o.srv.KillClients(t, "pubsub") }, func() { o.srv.KillClients(t, "normal") })
		}},
		{"what is to come of it has come", func() { <-time.After(11 * time.Second) }},
	} {
		fault.strike()
		o.settled(t)
		o.unchanged(t, fault.what)
	}
	require.Greater(t, time.Since(began), 2*shortWait, "no place could have expired")
	for _, p := range o.processes {
		require.NoError(t, p.cmd.Process.Kill())
		said, err := io.ReadAll(p.out)
		require.NoError(t, err)
		require.Empty(t, string(said), "its evictions")
	}
}
