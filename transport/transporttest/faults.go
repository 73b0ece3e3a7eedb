package transporttest

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var faultCases = []testCase{
	{"Start does not block while the server is frozen", startWhileFrozen, "Freeze"},
	{"a call that ran and lost its reply is uncertain, and is not repeated", repliesLost, "HoldReplies CutConnections"},
	{"a call that has not reached the server when its connection is cut is uncertain, and may still run", lateCall, "HoldRequest CutConnections"},
	{"calls of a server that is down end as not sent", serverDown, "Stop Start"},
}

func startWhileFrozen(f *fixture) {
	const calls, size = 2000, 8192
	tr, key := f.opened(), f.name()
	thaw := f.freeze()
	filler := strings.Repeat("x", size)
	var all []*pending
	var slowest time.Duration
	for i := 0; i < calls && slowest < atOnce; i++ {
		call := command("HSET", 1, key, strconv.Itoa(i), filler)
		began := time.Now()
		all = append(all, f.start(tr, call))
		slowest = max(slowest, time.Since(began))
	}
	thaw()
	assert.Less(f.t, slowest, atOnce, "the slowest of %d Starts", len(all))
	tally := map[class]int{}
	for _, p := range all {
		o := f.await(p)
		f.inContract(o.err)
		tally[classify(o.err)]++
	}
	f.t.Logf("%v", tally)
	f.recovers(tr)
}

// inFlight starts a call that runs, but whose reply is held until release.
func (f *fixture) inFlight(tr transport.Transport) (p *pending, key string, release func()) {
	f.t.Helper()
	release = f.holdReplies()
	p, key = f.ran(tr)
	return p, key, release
}

func (f *fixture) ran(tr transport.Transport) (p *pending, key string) {
	f.t.Helper()
	key = f.name()
	p = f.start(tr, command("INCR", 1, key)) // a script would be held at NOSCRIPT
	f.eventually("the call has run", func() bool { return f.value(key) == "1" })
	return p, key
}

func repliesLost(f *fixture) {
	tr := f.opened()
	for range 5 {
		release := f.holdReplies()
		calls := map[string]*pending{}
		for i := range 10 {
			p, key := f.ran(tr)
			calls[key] = p
			if i%2 == 0 {
				assert.False(f.t, p.call.Abandon())
			}
		}
		f.h.CutConnections(f.t)
		for _, p := range calls {
			f.isUncertain(f.await(p))
		}
		release()
		f.recovers(tr)
		for key := range calls {
			assert.Equal(f.t, "1", f.value(key), "the call was repeated")
		}
	}
}

func lateCall(f *fixture) {
	tr := f.opened()
	key, release, p := f.cutBeforeServer(tr)
	f.isUncertain(f.await(p))
	f.recovers(tr)
	assert.Empty(f.t, f.value(key), "the call was repeated")
	release()
	f.eventually("the call has run late", func() bool { return f.value(key) == "1" })
	f.recovers(tr)
	assert.Equal(f.t, "1", f.value(key))
}

func (f *fixture) cutBeforeServer(tr transport.Transport) (key string, release func(), p *pending) {
	f.t.Helper()
	key = f.name()
	seen, release := f.holdRequest(key)
	p = f.start(tr, command("INCR", 1, key))
	receive(f, seen, "the call was not sent")
	f.h.CutConnections(f.t)
	return key, release, p
}

// stopped stops the server, and returns when tr has noticed.
func (f *fixture) stopped(tr transport.Transport) (start func()) {
	f.t.Helper()
	f.h.Stop(f.t)
	start = f.once(func() { f.h.Start(f.t) })
	key := f.name()
	f.eventually("the transport has noticed", func() bool {
		o := f.do(tr, command("INCR", 1, key))
		require.Error(f.t, o.err, "the server is down")
		f.inContract(o.err)
		return classify(o.err) == notSent
	})
	return start
}

func serverDown(f *fixture) {
	const oneByOne, atATime = 6, 200
	tr, key := f.opened(), f.name()
	start := f.stopped(tr)
	for i := range oneByOne {
		call := command("INCR", 1, key)
		if i%2 == 0 {
			call = eval(count, 1, key)
		}
		call.Urgent = i%3 == 0
		f.isNotSent(f.do(tr, call))
	}
	var together []*pending
	for range atATime {
		together = append(together, f.start(tr, eval(count, 1, key)))
	}
	for _, p := range together {
		f.isNotSent(f.await(p))
	}
	start()
	f.recovers(tr)
	assert.Empty(f.t, f.value(key), "a call that ended as not sent has run")
	assert.Equal(f.t, int64(1), f.reply(tr, eval(count, 1, key)), "the server has lost the scripts")
}

var abandonCases = []testCase{
	{"a withdrawn call ends as not sent and never runs", withdrawn, ""},
	{"a call abandoned after it was sent gets its late reply", lateReply, "HoldReplies"},
}

// The calls are withdrawn immediately after Start, so that some of them are still queued.
func withdrawn(f *fixture) {
	const n = 2000
	tr, key := f.open(), f.name()
	var calls []*pending
	var gone []bool
	for i := range n {
		call := command("HSET", 1, key, fmt.Sprint(i), "ran")
		if i%2 == 0 {
			call = eval(hset, 1, key, fmt.Sprint(i), "ran")
		}
		call.Urgent = i%5 == 0
		calls = append(calls, f.start(tr, call))
		if i%3 == 0 {
			runtime.Gosched() // some may be in flight by then
		}
		gone = append(gone, call.Abandon())
		if i%100 == 0 {
			f.reply(tr, command("GET", 1, f.name()))
		}
	}
	count := 0
	for i, p := range calls {
		o := f.await(p)
		if gone[i] {
			count++
			f.isNotSent(o)
		} else if o.err != nil {
			f.isNotSent(o)
		}
		if o.err != nil {
			calls[i] = nil
		}
	}
	f.t.Logf("%d of %d calls were withdrawn", count, n)
	require.NotZero(f.t, count, "no call was ever queued: it seems to be claimed long before it is written")
	f.recovers(tr)
	fields, _ := plain(f.h.Do(f.t, "HKEYS", key)).([]any)
	there := map[any]bool{}
	for _, field := range fields {
		there[field] = true
	}
	for i, p := range calls {
		ran := there[fmt.Sprint(i)]
		assert.Equal(f.t, p != nil, ran, "call %d ran: expected by its outcome, found in the key", i)
	}
}

var hset = transport.NewScript("hset", "return redis.call('hset', KEYS[1], ARGV[1], ARGV[2])")

func lateReply(f *fixture) {
	tr, key := f.opened(), f.name()
	entered, unblock := make(chan struct{}), make(chan struct{})
	leave := f.once(func() { close(unblock) })
	release := f.holdReplies()
	p := f.watch(command("INCR", 1, key))
	tr.Start(p.call, func(reply any, err error) {
		p.done(reply, err)
		close(entered)
		<-unblock
	})
	f.eventually("the call has run", func() bool { return f.value(key) == "1" })
	assert.False(f.t, p.call.Abandon(), "a call that has run was withdrawn")
	assert.Empty(f.t, p.came, "the done of an abandoned call did not wait for the reply")
	release()
	receive(f, entered, "the reply of an abandoned call is lost")
	assert.Equal(f.t, outcome{int64(1), nil}, f.await(p))
	for i := range 100 {
		assert.Equal(f.t, int64(i+2), f.reply(tr, eval(count, 1, key)), "it holds up other replies")
	}
	leave()
}
