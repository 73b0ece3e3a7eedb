package rfairlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// The environment variables that give the test binary a role instead of running tests: a process
// that uses the server with this URL.
const (
	turnerRole = "RFAIRLOCK_TEST_TURNER"
	waiterRole = "RFAIRLOCK_TEST_WAITER"
)

func TestMain(m *testing.M) {
	for role, play := range map[string]func(url string) error{turnerRole: turner, waiterRole: runWaiter} {
		if url := os.Getenv(role); url != "" {
			fmt.Println("done", play(url))
			os.Exit(0)
		}
	}
	redistest.Main(m)
}

// umpire reads the order of the queue, by RPUSH, and of the grants, by HSET, with MONITOR.
type umpire struct {
	done    chan struct{}
	granted []int // by grant: when the owner was queued, -1 if never; set when done is closed
}

const whistle = "the game is over"

// watch starts an umpire of a lock.
func watch(t *testing.T, srv *redistest.Server, name string) *umpire {
	t.Helper()
	u, conn := &umpire{done: make(chan struct{})}, srv.Dial(t)
	_, err := conn.Do("MONITOR")
	require.NoError(t, err)
	push, grant := fmt.Sprintf("%q %q ", "RPUSH", codec.QueueKey(name)), fmt.Sprintf("%q %q ", "HSET", name)
	go func() {
		defer close(u.done)
		came := map[string]int{} // by owner, which may be reused
		for n := 0; ; n++ {
			line, err := redis.String(conn.Receive())
			if err != nil || strings.Contains(line, whistle) {
				return
			}
			if _, rest, ok := strings.Cut(line, push); ok {
				came[strings.Trim(rest, `"`)] = n
			} else if _, rest, ok := strings.Cut(line, grant); ok {
				owner, count, _ := strings.Cut(strings.Trim(rest, `"`), `" "`)
				assert.Equal(t, "1", count)
				at, waited := came[owner]
				if !waited {
					at = -1
				}
				delete(came, owner)
				u.granted = append(u.granted, at)
			}
		}
	}()
	return u
}

// inversions ends the watch. It returns how many queued waiters acquired the lock after a later one,
// and how many were queued.
func (u *umpire) inversions(t *testing.T, srv *redistest.Server) (inverted, queued int) {
	t.Helper()
	srv.Do(t, "ECHO", whistle)
	awaitClosed(t, u.done, "the end of the game")
	last := -1
	for _, n := range u.granted {
		if n < 0 {
			continue
		}
		queued++
		if n < last {
			inverted++
		}
		last = max(last, n)
	}
	return inverted, queued
}

// takeTurns acquires the lock in goroutines, each rounds times.
func takeTurns(ctx context.Context, l *rlock.Lock, goroutines, rounds int) error {
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := 0; n < rounds && errs[i] == nil; n++ {
				errs[i] = l.Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// turner takes turns at a lock. Its parent names the lock and the number of goroutines and rounds.
func turner(url string) error {
	client, err := redlatch.Open(context.Background(), url, noPoll())
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var name string
	var goroutines, rounds int
	if _, err := fmt.Scanln(&name, &goroutines, &rounds); err != nil {
		return err
	}
	go func() { // the parent's death closes the pipe
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	return errors.Join(takeTurns(context.Background(), rfairlock.New(client, name), goroutines, rounds), client.Close())
}

// process is another run of the test binary.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// start runs the test binary in a role of roles.
func start(t *testing.T, role, url string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return &process{cmd, in, bufio.NewReader(out)}
}

// expect checks the next line of the process.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSpace(line))
}

// Short waits lose a place soon if it is not kept.
const (
	shortWait = 15 * time.Second
	shortPoll = 5 * time.Second
)

// runWaiter waits for locks until the process is killed or its parent ends. A line of input has the
// number of waiters per lock and the locks. It prints the waiters that it evicts.
func runWaiter(url string) error {
	client, err := redlatch.Open(context.Background(), url, redlatch.WithObserver(redlatch.Observer{
		Evicted: func(e redlatch.Evicted) { fmt.Println("evicted", e.Name, e.Owner) },
	}),
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

func TestProcessesAcquireInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const processes, goroutines = 5, 10
	rounds := testlevel.Rounds(4, 10)
	srv := redistest.Start(t)
	name := redistest.Key(t)
	u := watch(t, srv, name)
	var all []*process
	for range processes {
		all = append(all, start(t, turnerRole, srv.URL()))
	}
	for _, p := range all {
		p.expect(t, "ready")
	}
	began := time.Now()
	for _, p := range all {
		_, err := fmt.Fprintln(p.in, name, goroutines, rounds)
		require.NoError(t, err)
	}
	for _, p := range all {
		p.expect(t, "done <nil>")
	}
	t.Logf("%.0f hand-overs per second", float64(processes*goroutines*rounds)/time.Since(began).Seconds())
	inverted, queued := u.inversions(t, srv)
	require.Zero(t, inverted)
	require.Len(t, u.granted, processes*goroutines*rounds)
	require.Greater(t, queued, processes*goroutines*rounds/2)
	requireNoTrace(t, srv, name)
}

// Redisson's default pool of subscriptions is too small for them.
func TestManyWaitersOfOneProcessAllAcquireInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	n := testlevel.Rounds(200, 1000)
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), noPoll(), redlatch.WithCommandTimeout(soon)) // the machine may be busy
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	var got []string // guarded by the lock
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			hold, err := l.Lock(t.Context())
			if !assert.NoError(t, err) {
				return
			}
			got = append(got, hold.Owner().String())
			assert.NoError(t, hold.Unlock())
		})
	}
	until(t, time.Minute, "all are queued", func() bool { return len(queueOf(t, srv, l.Name())) == n })
	until(t, time.Minute, "the listeners", func() bool { return len(srv.Channels(t)) == n })
	queue := queueOf(t, srv, l.Name())
	require.Equal(t, 2, srv.Clients(t), "for commands and for subscriptions")
	began := time.Now()
	freeByHand(t, srv, l.Name())
	wg.Wait()
	t.Logf("%.0f hand-overs per second", float64(n)/time.Since(began).Seconds())
	require.Equal(t, queue, got)
	requireNoTrace(t, srv, l.Name())
}

func TestNoCallerOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	holder, eager := rfairlock.New(connect(t, srv.URL()), name), rfairlock.New(connect(t, srv.URL()), name)
	hold := take(t, holder)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := make(chan struct{})
	tried := make(chan error, 1)
	go func() {
		defer close(stop)
		for ctx.Err() == nil {
			if hold, err := eager.TryLock(ctx); err == nil {
				tried <- hold.Unlock()
				return
			}
		}
	}()
	all := queueUp(t.Context(), t, srv, rfairlock.New(connect(t, srv.URL(), noPoll()), name), 10)
	last := all[len(all)-1]
	require.NoError(t, hold.Unlock())
	for _, w := range all {
		h := w.acquired(t, promptly)
		require.Empty(t, tried, "TryLock overtook the queue")
		if w == last {
			cancel()
		}
		require.NoError(t, h.Unlock())
	}
	<-stop
}
