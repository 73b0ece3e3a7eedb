package stress

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// release is the Redisson that takes part.
const release = "4.3.1"

// javaBound bounds one call of a live Redisson. It is no claim about it: it keeps a
// run from hanging.
const javaBound = time.Minute

// redisson is a Java process that takes the same locks, a caller for each thread. Redisson
// does not report that a lock was lost, so what is recorded of a hold is what its unlock
// has proved: that its owner was in the key all the time.
type redisson struct {
	peer  *peer.Peer
	name  string // in histories
	lease time.Duration
	log   *history.Writer
	marks *redis.Pool
	keys  []worker.Key
	seed  uint64
	ids   int // of begin, which one goroutine calls
}

// findJava returns the program of a release. A machine without it goes on without Redisson,
// unless it is required.
func findJava(t *testing.T, release string) (program peer.Program, ok bool) {
	t.Helper()
	program, err := peertest.Look(t, filepath.Join("..", ".."), release)
	if err != nil {
		t.Logf("NO REDISSON TAKES PART: %v", err)
	}
	return program, err == nil
}

// startJava starts a Java process that reaches the locks as the others do. Its lease is the
// longest of all: where leases differ, Redisson's readers cut the others' to theirs.
func (c *campaign) startJava(t *testing.T, program peer.Program) *redisson {
	t.Helper()
	number := len(c.java)
	keys := slices.DeleteFunc(slices.Clone(c.plan.keys), func(k worker.Key) bool { return k.Counter })
	r := &redisson{name: fmt.Sprint("java", number), log: c.log, keys: keys, seed: c.plan.seed + uint64(number)<<32, marks: &redis.Pool{
		MaxIdle: javaThreads, Dial: func() (redis.Conn, error) { return redis.DialURL(c.markServer.URL()) },
	}}
	for _, key := range r.keys {
		r.lease = max(r.lease, key.Lease)
	}
	t.Cleanup(func() { _ = r.marks.Close() }) // after the process, whose callers write there
	r.peer = peertest.Start(t, program)
	_, err := r.peer.Go(peer.Command{
		"op": "client", "client": "c", "thread": "main", "addresses": []string{c.proxy.URL()},
		"watchdog": r.lease.Milliseconds(),
	}).Wait(javaBound)
	require.NoError(t, err)
	return r
}

// javaThreads is how many callers the Java process has.
const javaThreads = 4

// begin sets the threads to work and returns what brings them to rest.
func (r *redisson) begin(t *testing.T) (rest func()) {
	t.Helper()
	quit := make(chan struct{})
	r.ids++
	var all sync.WaitGroup
	for i := range javaThreads {
		rnd := rand.New(rand.NewPCG(r.seed, uint64(r.ids*javaThreads+i)))
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-quit:
					return
				case <-time.After(time.Duration(rnd.Int64N(int64(30 * ms)))):
				}
				r.session(fmt.Sprintf("%s/%d.%d.%d", r.name, r.ids, i, n), fmt.Sprint("t", i), rnd)
			}
		})
	}
	return func() {
		close(quit)
		all.Wait()
	}
}

// session is one acquisition of a thread.
func (r *redisson) session(id, thread string, rnd *rand.Rand) {
	key := r.keys[rnd.IntN(len(r.keys))]
	if key.Permits > 0 {
		r.permitSession(id, thread, key, rnd)
		return
	}
	kind := "plain"
	switch reads := rnd.IntN(10) < 7; {
	case key.Fair:
		kind = "fair"
	case key.ReadWrite && reads:
		kind = "read"
	case key.ReadWrite:
		kind = "write"
	}
	command := peer.Command{"client": "c", "thread": thread, "name": key.Name, "kind": kind}
	called := history.Now()
	reply, err := r.peer.Go(command.With(peer.Command{"op": "tryLock", "wait": 3000})).Wait(javaBound)
	granted := history.Now()
	var got bool
	if err != nil || reply.Into(&got) != nil || !got {
		return
	}
	first := r.mark(key.Name)
	time.Sleep(time.Duration(rnd.Int64N(int64(100 * ms)))) // this is the work
	last := r.mark(key.Name)
	given := history.Now()
	_, err = r.peer.Go(command.With(peer.Command{"op": "unlock"})).Wait(javaBound)
	freed := history.Now()
	write := func(rec history.Record) {
		rec.P, rec.Key, rec.Hold = r.name, key.Name, id
		r.log.Write(rec)
	}
	// A hold of no length, unless the unlock says that there was more of it.
	r.log.Write(history.Record{T: called, P: r.name, Kind: history.Call, ID: id, Op: "redisson", Key: key.Name, Wait: javaBound})
	r.log.Write(history.Record{T: granted, P: r.name, Kind: history.Return, ID: id})
	write(history.Record{T: granted, Kind: history.Grant, ID: id, Owner: id, Lease: r.lease, Renewed: true, Read: kind == "read"})
	if err != nil {
		return
	}
	write(history.Record{T: given, Kind: history.Valid, Until: given})
	write(history.Record{T: given, Kind: history.Give, Op: "unlock"})
	write(history.Record{T: given, Kind: history.Call, ID: id + "u", Op: "unlock", Wait: javaBound})
	write(history.Record{T: freed, Kind: history.Return, ID: id + "u"})
	for _, entry := range []string{first, last} {
		write(history.Record{T: given, Kind: history.Mark, Entry: entry})
	}
}

// mark leaves an entry on the audit server.
func (r *redisson) mark(name string) string {
	conn := r.marks.Get()
	defer func() { _ = conn.Close() }() // back to the pool
	entry, err := redis.String(conn.Do("XADD", name, "MAXLEN", "~", 1000, "*", r.name, "1"))
	if err != nil {
		return ""
	}
	return entry
}
