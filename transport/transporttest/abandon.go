package transporttest

import (
	"fmt"
	"runtime"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var abandonCases = []testCase{
	{"a withdrawn call ends as not sent and never runs", withdrawn},
	{"a call abandoned after it was sent gets its late reply", lateReply},
	{"a done of an abandoned call that blocks holds up no other reply", slowLateDone},
}

// withdrawn withdraws calls right after Start. Some will have been sent by then,
// of a number like this not all.
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
			runtime.Gosched() // some may be on their way by then
		}
		gone = append(gone, call.Abandon())
		if i%100 == 0 {
			f.reply(tr, command("GET", 1, f.name())) // let the queue run empty
		}
	}
	count := 0
	for i, p := range calls {
		o := f.await(p)
		if gone[i] {
			count++
			f.isNotSent(o)
		} else if o.err != nil {
			f.isNotSent(o) // it was to be repeated, and was dropped instead
		}
		if o.err != nil {
			calls[i] = nil
		}
	}
	f.t.Logf("%d of %d calls were withdrawn", count, n)
	require.NotZero(f.t, count, "no call was ever queued: it seems to be claimed long before it is written")
	f.recovers(tr)
	for i, p := range calls {
		ran := f.h.Do(f.t, "HEXISTS", key, fmt.Sprint(i)) == any(int64(1))
		assert.Equal(f.t, p != nil, ran, "call %d ran: what its done was given, and what is", i)
	}
}

var hset = transport.NewScript("hset", "return redis.call('hset', KEYS[1], ARGV[1], ARGV[2])")

// lateOne starts a call whose reply is held back, waits until it has run, and
// abandons it.
func (f *fixture) lateOne(tr transport.Transport, done transport.Done) (release func()) {
	key := f.name()
	release = f.holdReplies()
	call := command("INCR", 1, key)
	p := f.watch(call)
	tr.Start(call, func(reply any, err error) {
		p.done(reply, err)
		done(reply, err)
	})
	f.eventually("the call has run", func() bool { return f.value(key) == "1" })
	assert.False(f.t, call.Abandon(), "a call that has run was withdrawn")
	return release
}

func lateReply(f *fixture) {
	f.need("HoldReplies", f.h.HoldReplies != nil)
	tr := f.opened()
	came := make(chan outcome, 1)
	release := f.lateOne(tr, func(reply any, err error) { came <- outcome{reply, err} })
	select {
	case o := <-came:
		f.t.Fatalf("the done of an abandoned call did not wait for the reply: %v", o)
	default:
	}
	release()
	select {
	case o := <-came:
		require.NoError(f.t, o.err)
		assert.Equal(f.t, int64(1), o.reply)
	case <-time.After(f.h.Patience):
		f.t.Fatal("the reply of an abandoned call is lost")
	}
}

func slowLateDone(f *fixture) {
	f.need("HoldReplies", f.h.HoldReplies != nil)
	tr := f.opened()
	entered, unblock := make(chan struct{}), make(chan struct{})
	leave := f.once(func() { close(unblock) })
	release := f.lateOne(tr, func(any, error) {
		close(entered)
		<-unblock
	})
	release()
	select {
	case <-entered:
	case <-time.After(f.h.Patience):
		f.t.Fatal("the reply of an abandoned call is lost")
	}
	key := f.name()
	for i := range 100 {
		assert.Equal(f.t, int64(i+1), f.reply(tr, eval(count, 1, key)))
	}
	leave()
}
