package transporttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var gapCases = []testCase{
	{"every subscription hears of a gap after each cut, and messages after it", gapAfterEachCut},
	{"a subscription that was closed during a cut is not made anew", closedDuringCut},
	{"a gap waits for a listener that is not there yet", gapIsKept},
	{"no wake-up is lost while connections are cut", noWakeUpLost},
	{"every subscription hears of a gap after the server was down", gapAfterRestart},
	{"Subscribe works again after the server was down", subscribeAfterRestart},
}

// gap waits until a subscription hears of a gap.
func (f *fixture) gap(sub transport.Subscription) {
	f.t.Helper()
	for e := f.event(sub); !e.Gap; {
		e = f.event(sub)
	}
}

// drain takes an event that waits.
func drain(sub transport.Subscription) {
	select {
	case <-sub.Events():
	default:
	}
}

func gapAfterEachCut(f *fixture) {
	f.need("CutSubscribers", f.h.CutSubscribers != nil)
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
			// The gap is over: what is published now is heard.
			payload := fmt.Sprintf("round %d, %d", round, i)
			f.publish(tr, names[i/2], payload)
			f.hearsAfterAll(sub, payload)
		}
		for _, sub := range subs {
			require.NoError(f.t, sub.Err())
			drain(sub)
		}
	}
}

func closedDuringCut(f *fixture) {
	f.need("CutSubscribers", f.h.CutSubscribers != nil)
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
	f.need("CutSubscribers", f.h.CutSubscribers != nil)
	tr, channel := f.open(), f.name()
	late, early := f.subscribe(tr, channel), f.subscribe(tr, channel)
	f.h.CutSubscribers(f.t)
	f.gap(early)
	f.publish(tr, channel, "after the gap")
	f.hears(early, "after the gap")
	f.hearsFirst(late, transport.Event{Gap: true}, 1)
}

func noWakeUpLost(f *fixture) {
	const goroutines, rounds = 8, 150
	f.need("CutSubscribers", f.h.CutSubscribers != nil)
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
	cuts, before := 0, int64(0)
	for left.Load() > 0 {
		<-time.After(cutEvery)
		now := heard.Load()
		if now == before { // a slow machine must get on between two cuts
			continue
		}
		before = now
		f.h.CutSubscribers(f.t)
		cuts++
	}
	wg.Wait()
	f.t.Logf("%d cuts", cuts)
	for _, name := range names {
		f.unsubscribed(tr, name)
	}
}

func gapAfterRestart(f *fixture) {
	f.need("Stop", f.h.Stop != nil && f.h.Start != nil)
	tr, channel := f.opened(), f.name()
	subs := []transport.Subscription{f.subscribe(tr, channel), f.subscribe(tr, channel), f.subscribe(tr, f.name())}
	for range 2 {
		start := f.stopped(tr)
		for _, sub := range subs {
			require.NoError(f.t, sub.Err(), "a server that is down is no reason to give up")
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
	f.need("Stop", f.h.Stop != nil && f.h.Start != nil)
	tr, channel := f.opened(), f.name()
	start := f.stopped(tr)
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	_, err := tr.Subscribe(ctx, channel)
	cancel()
	require.Error(f.t, err, "the server is down")
	if ctx.Err() == nil || classify(err) != outside {
		f.inContract(err)
	} else {
		assert.ErrorIs(f.t, err, context.DeadlineExceeded)
	}
	start()
	var sub transport.Subscription
	f.eventually("Subscribe works", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), f.h.Patience)
		defer cancel()
		sub, err = tr.Subscribe(ctx, channel)
		return err == nil
	})
	defer sub.Close()
	f.publish(tr, channel, "back")
	f.hears(sub, "back")
}
