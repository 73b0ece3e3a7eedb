//go:build linux

package stress

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rsemaphore"
)

var trials = flag.Int("trials", 10, "how many holders of permits are killed")

const (
	// holderEnv has the address, the name and the number of permits of a test binary that is to
	// hold permits until it is killed.
	holderEnv = "REDLATCH_STRESS_HOLDER"
	// trialLease is the lease of its permits, trialBound when they must be back: one lease and
	// five seconds.
	trialLease = 5 * time.Second
	trialBound = trialLease + 5*time.Second
	// trialPermits is how many each semaphore has, trialsAtOnce how many trials run at a time.
	trialPermits = 3
	trialsAtOnce = 10
)

// holdPermits is what such a process does.
func holdPermits(text string) error {
	ctx := context.Background()
	var url, name string
	var n int
	if _, err := fmt.Sscan(text, &url, &name, &n); err != nil {
		return err
	}
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	hold, err := rsemaphore.NewExpirable(client, name).Acquire(ctx, n, rsemaphore.WithWatchdog(trialLease))
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(hold.IDs(), ","))
	bufio.NewScanner(os.Stdin).Scan() // the parent's death ends it, too
	return nil
}

// trial is one process that is killed while it holds permits, which others take and give, too.
type trial struct {
	server *redistest.Server
	name   string
	kept   atomic.Int64 // permits of the holder, while it lives
	out    atomic.Int64 // permits that the others have
	rounds [2]atomic.Int64
}

// TestPermitsOfAKilledHolderAreBackWithinItsLease kills holders of permits, processes of their
// own, again and again, while a live Redisson and Redlatch take and give permits of the same
// semaphores. Each permit must be back within a lease and five seconds, once.
func TestPermitsOfAKilledHolderAreBackWithinItsLease(t *testing.T) {
	testlevel.All(t, "half a minute of leases that run out")
	s := redistest.Start(t)
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	var java *peer.Peer
	if program, ok := findJava(t, release); ok {
		java = peertest.Start(t, program)
		_, err := java.Go(peer.Command{"op": "client", "client": "c", "thread": "main", "addresses": []string{s.URL()}}).Wait(javaBound)
		require.NoError(t, err)
	}
	var took []time.Duration
	for len(took) < *trials && !t.Failed() {
		batch := make([]time.Duration, min(trialsAtOnce, *trials-len(took)))
		var all sync.WaitGroup
		for i := range batch {
			trial := &trial{server: s, name: fmt.Sprint("trial-", len(took)+i)}
			all.Go(func() { batch[i] = trial.run(t, client, java, 1+i%2) })
		}
		all.Wait()
		took = append(took, batch...)
	}
	slices.Sort(took)
	within := 0
	for _, d := range took {
		if d < trialBound {
			within++
		}
	}
	require.Equal(t, len(took), within)
	t.Logf("%d of %d killed holders: their permits were back within %v; after %v at least, %v in the middle, %v at most",
		within, len(took), trialBound, took[0], took[len(took)/2], took[len(took)-1])
}

// run kills one holder, and returns how long after that its permits were back.
func (r *trial) run(t *testing.T, client *redlatch.Client, java *peer.Peer, n int) (back time.Duration) {
	t.Helper()
	sem := rsemaphore.NewExpirable(client, r.name)
	made, err := sem.TrySetPermits(t.Context(), trialPermits)
	if !assert.NoError(t, err) || !assert.True(t, made) {
		return trialBound
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kill, ids := r.holder(t, n)
	if len(ids) != n {
		return trialBound
	}
	r.kept.Store(int64(n))
	var others sync.WaitGroup
	for i := range 2 {
		others.Go(func() { r.ours(ctx, t, sem) })
		if java != nil {
			others.Go(func() { r.theirs(ctx, t, java, fmt.Sprint(r.name, i)) })
		}
	}
	lives := time.Duration(rand.Int64N(int64(2 * trialLease))) // longer than a lease, now and then
	for died := time.Now().Add(lives); time.Now().Before(died); time.Sleep(10 * ms) {
		if !assert.Equal(t, n, r.has(t, ids), "%s: permits of a live holder", r.name) {
			break
		}
	}
	r.kept.Store(0)
	killed := kill()
	for back = time.Since(killed); back < trialBound && r.has(t, ids) > 0; back = time.Since(killed) {
		time.Sleep(5 * ms)
	}
	time.Sleep(200 * ms) // all may be out now
	cancel()
	others.Wait()
	// What was granted to an attempt that was withdrawn at that moment is given back behind it.
	assert.EventuallyWithT(t, func(t *assert.CollectT) {
		free, err := sem.Available(context.WithoutCancel(ctx))
		assert.NoError(t, err)
		assert.Equal(t, trialPermits, free)
	}, 30*time.Second, 5*ms, "%s: the permits are back, and once", r.name)
	assert.Positive(t, r.rounds[0].Load(), "%s: rounds of Redlatch", r.name)
	assert.True(t, java == nil || r.rounds[1].Load() > 0, "%s: rounds of Redisson", r.name)
	return back
}

// holder starts a process that holds n permits, and returns what kills it.
func (r *trial) holder(t *testing.T, n int) (kill func() time.Time, ids []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+fmt.Sprint(r.server.URL(), " ", r.name, " ", n))
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if !assert.NoError(t, errors.Join(inErr, outErr, cmd.Start())) {
		return func() time.Time { return time.Now() }, nil
	}
	if lines := bufio.NewScanner(out); assert.True(t, lines.Scan(), "%s: the holder has no permits", r.name) {
		ids = strings.Split(lines.Text(), ",")
	}
	return func() time.Time {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		killed := time.Now()
		assert.Error(t, cmd.Wait(), "it was killed")
		_ = in.Close() // with the process that read it
		return killed
	}, ids
}

// lookAtTrial reads how many permits a semaphore has available and taken, and how many of some
// are taken.
const lookAtTrial = `local n = 0
for i = 1, #ARGV do
  if redis.call('ZSCORE', KEYS[2], (string.gsub(ARGV[i], '..', function(c) return string.char(tonumber(c, 16)) end))) then n = n + 1 end
end
return {redis.call('GET', KEYS[1]) + redis.call('ZCARD', KEYS[2]), n}`

// has counts the dead holder's permits, and holds that the server has never more or fewer than all.
func (r *trial) has(t *testing.T, ids []string) int {
	t.Helper()
	args := []any{lookAtTrial, 2, r.name, codec.PermitsKey(r.name)}
	for _, id := range ids {
		args = append(args, id)
	}
	counts, err := redis.Ints(r.server.Do(t, "EVAL", args...), nil)
	if !assert.NoError(t, err) {
		return 0
	}
	assert.Equal(t, trialPermits, counts[0], "%s: permits available and taken", r.name)
	return counts[1]
}

// have is what the others do with permits that they have.
func (r *trial) have(t *testing.T, n int64, language int) {
	t.Helper()
	out := r.out.Add(n)
	kept := r.kept.Load() // afterwards: these were not back when the others were counted
	assert.LessOrEqual(t, out+kept, int64(trialPermits), "%s: the holder has %d of them", r.name, kept)
	time.Sleep(time.Duration(rand.Int64N(int64(20 * ms))))
	r.out.Add(-n)
	r.rounds[language].Add(1)
}

// ours takes and gives permits by Redlatch.
func (r *trial) ours(ctx context.Context, t *testing.T, sem *rsemaphore.Expirable) {
	t.Helper()
	for ctx.Err() == nil {
		hold, err := sem.Acquire(ctx, 1)
		if err != nil {
			assert.Error(t, ctx.Err(), "%s: %v", r.name, err)
			return
		}
		r.have(t, 1, 0)
		assert.NoError(t, hold.Release())
		time.Sleep(time.Duration(rand.Int64N(int64(20 * ms))))
	}
}

// theirs does it by a live Redisson.
func (r *trial) theirs(ctx context.Context, t *testing.T, java *peer.Peer, thread string) {
	t.Helper()
	command := peer.Command{"op": "call", "client": "c", "thread": thread, "name": r.name, "kind": "permits"}
	for ctx.Err() == nil {
		reply, err := java.Go(command.With(peer.Command{"method": "tryAcquire", "args": []any{100, 60000, "ms"}})).Wait(javaBound)
		var id string
		if !assert.NoError(t, err) || !assert.NoError(t, reply.Into(&id)) {
			return
		}
		if id == "" {
			continue
		}
		r.have(t, 1, 1)
		_, err = java.Go(command.With(peer.Command{"method": "release", "args": []any{id}})).Wait(javaBound)
		assert.NoError(t, err)
		time.Sleep(time.Duration(rand.Int64N(int64(20 * ms))))
	}
}
