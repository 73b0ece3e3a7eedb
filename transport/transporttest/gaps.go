package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var gapCases = []testCase{
	{"every subscription gets a gap after each cut, and later messages", gapAfterEachCut, "CutSubscribers"},
	{"a subscription that was closed during a cut is not made anew", closedDuringCut, "CutSubscribers"},
	{"a gap waits for a listener that is not there yet", gapIsKept, "CutSubscribers"},
	{"no wake-up is lost while connections are cut", func(f *fixture) { churn(f, true) }, "CutSubscribers"},
	{"every subscription gets a gap after the server was down", gapAfterRestart, "Stop Start"},
	{"Subscribe works again after the server was down", subscribeAfterRestart, "Stop Start"},
}

func (f *fixture) gap(sub transport.Subscription) {
	f.t.Helper()
	for e := f.event(sub); !e.Gap; {
		e = f.event(sub)
	}
}

func gapAfterEachCut(f *fixture) {
	tr := f.open()
	var subs []transport.Subscription
	var names []string
	for i := range 6 {
		if i%2 == 0 {
			names = append(names, f.name())
		}
		subs = append(subs, f.subscribe(tr, names[i/2]))
	}
	for round := range 10 {
		f.h.CutSubscribers(f.t)
		for i, sub := range subs {
			f.gap(sub)
			payload := fmt.Sprintf("round %d, %d", round, i)
			f.publish(tr, names[i/2], payload)
			f.hearsAfterAll(sub, payload)
		}
		for _, sub := range subs {
			require.NoError(f.t, sub.Err())
			select {
			case <-sub.Events():
			default:
			}
		}
	}
}

func closedDuringCut(f *fixture) {
	tr, channel, kept := f.open(), f.name(), f.name()
	stays := f.subscribe(tr, kept)
	for range 20 {
		sub := f.subscribe(tr, channel)
		f.h.CutSubscribers(f.t)
		sub.Close()
		f.gap(stays)
		f.unsubscribed(tr, channel)
	}
}

func gapIsKept(f *fixture) {
	tr, channel := f.open(), f.name()
	late, early := f.subscribe(tr, channel), f.subscribe(tr, channel)
	f.h.CutSubscribers(f.t)
	f.gap(early)
	f.publish(tr, channel, "after the gap")
	f.hears(early, "after the gap")
	f.hearsFirst(late, transport.Event{Gap: true}, 1)
}

func churn(f *fixture, cut bool) {
	const goroutines, rounds = 8, 150
	tr, names := f.open(), [3]string{f.name(), f.name(), f.name()}
	var left, heard atomic.Int64
	left.Store(goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			defer left.Add(-1)
			for i := range rounds {
				if fault := f.subscribePublishHear(tr, names[(g+i)%len(names)]); fault != "" {
					f.t.Errorf("goroutine %d, round %d: %s", g, i, fault)
					return
				}
				heard.Add(1)
			}
		})
	}
	for before := int64(0); cut && left.Load() > 0; {
		<-time.After(cutEvery)
		if now := heard.Load(); now > before { // allows a slow machine to progress between cuts
			before = now
			f.h.CutSubscribers(f.t)
		}
	}
	wg.Wait()
	for _, name := range names {
		f.unsubscribed(tr, name)
	}
}

func gapAfterRestart(f *fixture) {
	tr, channel := f.opened(), f.name()
	subs := []transport.Subscription{f.subscribe(tr, channel), f.subscribe(tr, channel), f.subscribe(tr, f.name())}
	for range 2 {
		start := f.stopped(tr)
		for _, sub := range subs {
			require.NoError(f.t, sub.Err(), "subscriptions survive while the server is down")
		}
		start()
		for _, sub := range subs {
			f.gap(sub)
		}
		f.publish(tr, channel, "back")
		f.hears(subs[0], "back")
		f.hears(subs[1], "back")
	}
}

func subscribeAfterRestart(f *fixture) {
	tr, channel := f.opened(), f.name()
	start := f.stopped(tr)
	ctx := f.within(time.Second)
	_, err := tr.Subscribe(ctx, channel)
	require.Error(f.t, err, "the server is down")
	if ctx.Err() == nil || classify(err) != outside {
		f.inContract(err)
	} else {
		assert.ErrorIs(f.t, err, context.DeadlineExceeded)
	}
	start()
	var sub transport.Subscription
	f.eventually("Subscribe works", func() bool {
		sub, err = tr.Subscribe(f.within(f.h.Patience), channel)
		return err == nil
	})
	defer sub.Close()
	f.publish(tr, channel, "back")
	f.hears(sub, "back")
}

var replicaCases = []testCase{
	{"Replicate: a replica counts only once it has the write", replicaCounted, "Replica"},
	{"Replicate: its timeout ends the wait, and the call has run", replicaTime, ""},
	{"Replicate: other calls do not wait for replicas", replicaDelaysNoOther, ""},
	{"Replicate: many calls share the time of one", replicaMany, ""},
	{"Replicate: a script that the server has forgotten runs", replicaForgotten, ""},
	{"Replicate: a call that the server refuses is an error", replicaRefused, ""},
	{"Replicate: a withdrawn call never runs", replicaWithdrawn, ""},
	{"Replicate: every call ends while connections are cut", replicaCut, "CutConnections"},
	{"Replicate: Close ends it", replicaClosed, ""},
}

const brief = 200 * time.Millisecond

const unmet = 100

var write = transport.NewScript("write", "redis.call('set', KEYS[1], ARGV[1]) return 1")

type replicating struct {
	*pending
	have chan int64
}

func (f *fixture) replicate(r transport.Replicator, call *transport.Call, timeout time.Duration) replicating {
	return f.replicateTo(r, unmet, call, timeout)
}

func (f *fixture) replicateTo(r transport.Replicator, replicas int, call *transport.Call, timeout time.Duration) replicating {
	p := replicating{f.watch(call), make(chan int64, 1)}
	r.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
		select {
		case p.have <- have:
		default: // it ran before, as p reports
		}
		p.done(reply, err)
	})
	return p
}

func (f *fixture) replicas(r transport.Replicator, wanted int, timeout time.Duration) int64 {
	f.t.Helper()
	key := f.name()
	p := f.replicateTo(r, wanted, eval(write, 1, key, "written"), timeout)
	o := f.await(p.pending)
	require.NoError(f.t, o.err)
	assert.Equal(f.t, int64(1), o.reply)
	assert.Equal(f.t, "written", f.value(key))
	return <-p.have
}

func (f *fixture) replicator() (transport.Transport, transport.Replicator) {
	f.t.Helper()
	tr := f.open()
	return tr, as[transport.Replicator](f, tr, "Replicator")
}

func replicaCounted(f *fixture) {
	tr, r := f.replicator()
	stop, goOn := f.h.Replica(f.t)
	assert.Equal(f.t, int64(1), f.replicas(r, 1, f.h.Patience))
	stop()
	f.once(goOn)
	for range 2 {
		assert.Equal(f.t, int64(0), f.replicas(r, 1, brief), "no replica can have it")
		f.reply(tr, command("SET", 1, f.name(), "by somebody else"))
	}
	goOn()
	assert.Equal(f.t, int64(1), f.replicas(r, 1, f.h.Patience))
}

func replicaTime(f *fixture) {
	_, r := f.replicator()
	assert.Less(f.t, f.replicas(r, unmet, time.Millisecond), int64(unmet), "no server has so many")
	began := time.Now()
	assert.Less(f.t, f.replicas(r, unmet, brief), int64(unmet))
	assert.Less(f.t, time.Since(began), atOnce)
}

func replicaDelaysNoOther(f *fixture) {
	tr, r := f.replicator()
	f.recovers(tr)
	p := f.replicate(r, eval(write, 1, f.name(), "v"), f.h.Patience)
	began := time.Now()
	for range 10 {
		f.reply(tr, command("ECHO", 0, "meanwhile"))
	}
	assert.Less(f.t, time.Since(began), atOnce)
	f.close(tr)
	f.inContract(f.await(p.pending).err)
}

func replicaMany(f *fixture) {
	_, r := f.replicator()
	first := f.replicate(r, eval(write, 1, f.name(), "v"), brief)
	var all []replicating
	for range 60 {
		all = append(all, f.replicate(r, command("SET", 1, f.name(), "v"), 5*brief))
	}
	began := time.Now()
	for _, p := range slices.Backward(append(all, first)) {
		assert.NoError(f.t, f.await(p.pending).err)
	}
	assert.Less(f.t, time.Since(began), 10*brief+atOnce)
}

func replicaForgotten(f *fixture) {
	_, r := f.replicator()
	for range 3 {
		f.replicas(r, unmet, time.Millisecond)
		f.h.Do(f.t, "SCRIPT", "FLUSH")
	}
}

func replicaRefused(f *fixture) {
	tr, r := f.replicator()
	key := f.name()
	f.reply(tr, command("SET", 1, key, "text"))
	o := f.await(f.replicate(r, command("HSET", 1, key, "f", "v"), brief).pending)
	assert.True(f.t, transport.IsCode(o.err, "WRONGTYPE"), "%v", o.err)
	f.inContract(o.err)
	f.need("Forbid")
	f.h.Forbid(f.t, "WAIT")
	o = f.await(f.replicate(r, command("SET", 1, key, "v"), brief).pending)
	require.Error(f.t, o.err, "it is unknown which have it")
	assert.True(f.t, transport.IsCode(o.err, "NOPERM"), "%v", o.err)
	f.inContract(o.err)
}

func replicaWithdrawn(f *fixture) {
	_, r := f.replicator()
	first := f.replicate(r, eval(write, 1, f.name(), "v"), brief)
	var left []replicating
	gone := map[string]bool{}
	for range 50 {
		key := f.name()
		p := f.replicate(r, command("SET", 1, key, "ran"), brief)
		runtime.Gosched()
		gone[key] = p.call.Abandon()
		left = append(left, p)
	}
	assert.NoError(f.t, f.await(first.pending).err)
	for _, p := range left {
		o := f.await(p.pending)
		if key := p.call.Key(0); gone[key] {
			f.isNotSent(o)
			assert.Empty(f.t, f.value(key), "a call ran that was withdrawn")
		}
	}
}

func replicaCut(f *fixture) {
	tr, r := f.replicator()
	f.recovers(tr)
	for range 5 {
		p := f.replicate(r, eval(write, 1, f.name(), "v"), 2*brief)
		f.h.CutConnections(f.t)
		if o := f.await(p.pending); o.err != nil {
			f.inContract(o.err)
		}
	}
	f.eventually("it works", func() bool {
		o := f.await(f.replicate(r, eval(write, 1, f.name(), "v"), time.Millisecond).pending)
		return o.err == nil
	})
}

func replicaClosed(f *fixture) {
	tr, r := f.replicator()
	f.recovers(tr)
	waiting := f.replicate(r, eval(write, 1, f.name(), "v"), f.h.Patience)
	behind := f.replicate(r, eval(write, 1, f.name(), "v"), f.h.Patience)
	began := time.Now()
	f.close(tr)
	assert.Less(f.t, time.Since(began), atOnce)
	late := f.replicate(r, eval(write, 1, f.name(), "v"), f.h.Patience)
	f.isNotSent(f.await(late.pending))
	for _, p := range []replicating{waiting, behind} {
		o := f.await(p.pending)
		f.inContract(o.err)
		assert.True(f.t, o.err == nil || errors.Is(o.err, transport.ErrClosed), "%v", o.err)
	}
}
