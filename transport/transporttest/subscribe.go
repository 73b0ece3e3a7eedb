package transporttest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var subscribeCases = []testCase{
	{"the publish command is PUBLISH or SPUBLISH", publishCommand, ""},
	{"a message published right after Subscribe returned is seen", seenAtOnce, ""},
	{"Subscribe from many goroutines loses no message", func(f *fixture) { churn(f, false) }, ""},
	{"messages arrive with their payload", payloads, ""},
	{"messages of other channels do not arrive", otherChannels, ""},
	{"subscriptions to one channel are independent", independent, ""},
	{"a subscription buffers one event and drops later ones", coalescing, ""},
	{"a stuck listener does not delay others", stuckListener, ""},
	{"a script publishes to a subscription", publishedByScript, ""},
	{"closed subscriptions end on the server", endsOnServer, ""},
	{"Subscribe with an ended context returns its error and leaves nothing", endedContext, ""},
	{"Subscribe returns when its context ends while the server is frozen", contextEndsWhileFrozen, "Freeze"},
}

func (f *fixture) subscribe(tr transport.Transport, channel string) transport.Subscription {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), f.h.Patience)
	defer cancel() // this must not end the subscription
	began := time.Now()
	sub, err := tr.Subscribe(ctx, channel)
	if classify(err) == notSent && !f.late && time.Now().After(began.Add(atOnce)) {
		f.late = true
		f.t.Logf("Subscribe again, after %v: %v", time.Since(began), err)
		sub, err = tr.Subscribe(ctx, channel) // a busy machine may connect too late once
	}
	require.NoError(f.t, err, "Subscribe")
	f.t.Cleanup(sub.Close)
	return sub
}

func (f *fixture) event(sub transport.Subscription) transport.Event {
	f.t.Helper()
	select {
	case e, ok := <-sub.Events():
		require.True(f.t, ok, "the subscription has failed: %v", sub.Err())
		return e
	case <-time.After(f.h.Patience):
		f.t.Fatalf("no event after %v", f.h.Patience)
		return transport.Event{}
	}
}

func (f *fixture) hears(sub transport.Subscription, payload string) {
	f.t.Helper()
	assert.Equal(f.t, transport.Event{Payload: payload}, f.event(sub))
}

func (f *fixture) hearsFirst(sub transport.Subscription, first transport.Event, dropped int) {
	f.t.Helper()
	e := f.event(sub)
	if e.Coalesced != 0 {
		first.Coalesced = dropped
	}
	assert.Equal(f.t, first, e)
}

func (f *fixture) hearsAfterAll(sub transport.Subscription, payload string) {
	f.t.Helper()
	for e := f.event(sub); e.Payload != payload; {
		e = f.event(sub)
	}
}

func (f *fixture) silent(sub transport.Subscription) {
	f.t.Helper()
	select {
	case e, ok := <-sub.Events():
		f.t.Errorf("an event that should not be: %+v, %v", e, ok)
	default:
	}
}

func (f *fixture) publish(tr transport.Transport, channel, payload string) {
	f.t.Helper()
	f.h.Do(f.t, tr.PublishCommand(), channel, payload)
}

func (f *fixture) subscribers(tr transport.Transport, channel string) int64 {
	f.t.Helper()
	if f.h.Subscribers != nil {
		return f.h.Subscribers(f.t, channel)
	}
	asks := []string{"NUMSUB"}
	if tr.PublishCommand() == "SPUBLISH" {
		asks = append(asks, "SHARDNUMSUB")
	}
	var sum int64
	for _, ask := range asks {
		pair, _ := f.h.Do(f.t, "PUBSUB", ask, channel).([]any)
		require.Len(f.t, pair, 2, "PUBSUB %s", ask)
		n, isNumber := pair[1].(int64)
		require.True(f.t, isNumber, "PUBSUB %s: %v", ask, pair)
		sum += n
	}
	return sum
}

func (f *fixture) unsubscribed(tr transport.Transport, channel string) {
	f.t.Helper()
	f.eventually("nobody listens to "+channel, func() bool { return f.subscribers(tr, channel) == 0 })
}

func publishCommand(f *fixture) {
	tr := f.open()
	before := tr.PublishCommand()
	assert.Contains(f.t, []string{"PUBLISH", "SPUBLISH"}, before)
	f.recovers(tr)
	assert.Equal(f.t, before, tr.PublishCommand(), "it does not change when the transport connects")
}

// seenAtOnce makes UNSUBSCRIBE and SUBSCRIBE for the same channel overlap.
func seenAtOnce(f *fixture) {
	const rounds = 400
	tr, same := f.open(), f.name()
	for i := range rounds {
		channel := same
		if i%4 == 0 {
			channel = f.name()
		}
		sub := f.subscribe(tr, channel)
		payload := fmt.Sprint("round ", i)
		f.publish(tr, channel, payload)
		f.hears(sub, payload)
		sub.Close()
	}
	f.unsubscribed(tr, same)
}

// subscribePublishHear may be called on any goroutine.
func (f *fixture) subscribePublishHear(tr transport.Transport, channel string) string {
	ctx, cancel := context.WithTimeout(f.t.Context(), f.h.Patience)
	defer cancel()
	sub, err := tr.Subscribe(ctx, channel)
	if classify(err) == notSent {
		return "" // permitted while connections are being cut
	}
	if err != nil {
		return "Subscribe: " + err.Error()
	}
	defer sub.Close()
	for published := false; !published; {
		p := f.start(tr, command(tr.PublishCommand(), 1, channel, "to somebody"))
		select {
		case o := <-p.came:
			published = o.err == nil
		case <-ctx.Done():
			return "PUBLISH does not end"
		}
	}
	select {
	case _, ok := <-sub.Events():
		if !ok {
			return fmt.Sprint("the subscription has failed: ", sub.Err())
		}
		return ""
	case <-ctx.Done():
		return "neither a message nor a gap: a wake-up is lost"
	}
}

func payloads(f *fixture) {
	tr, channel := f.open(), f.name()
	sub := f.subscribe(tr, channel)
	for _, payload := range []string{
		"0", "", "some words", "a\r\nb\x00c\xff", "ünïcödé", strings.Repeat("long ", 20_000), "message", "subscribe",
	} {
		f.publish(tr, channel, payload)
		f.hears(sub, payload)
	}
	assert.NoError(f.t, sub.Err(), "while the subscription works")
}

func otherChannels(f *fixture) {
	tr, channel := f.open(), f.name()
	first, second := f.subscribe(tr, channel), f.subscribe(tr, channel+":second")
	third := f.subscribe(tr, strings.ToUpper(channel))
	f.publish(tr, channel+":second", "for the second")
	f.publish(tr, channel, "for the first")
	f.publish(tr, channel+"*", "for nobody")
	f.hears(first, "for the first")
	f.hears(second, "for the second")
	f.publish(tr, strings.ToUpper(channel), "for the third")
	f.hears(third, "for the third")
	f.silent(first)
	f.silent(second)
}

func independent(f *fixture) {
	tr, channel := f.open(), f.name()
	subs := make([]transport.Subscription, 5)
	for i := range subs {
		subs[i] = f.subscribe(tr, channel)
	}
	for n := len(subs); n > 0; n-- {
		payload := fmt.Sprint("for ", n)
		f.publish(tr, channel, payload)
		for _, sub := range subs[:n] {
			f.hears(sub, payload)
		}
		for _, closed := range subs[n:] {
			f.silent(closed) // it receives neither a message nor the end of Events
		}
		subs[n-1].Close()
		subs[n-1].Close() // harmless, also to other subscriptions
	}
	f.unsubscribed(tr, channel)
	again := f.subscribe(tr, channel)
	f.publish(tr, channel, "once more")
	f.hears(again, "once more")
}

func coalescing(f *fixture) {
	tr, channel := f.open(), f.name()
	idle, reader := f.subscribe(tr, channel), f.subscribe(tr, channel)
	for i := range 100 {
		payload := fmt.Sprint(i)
		f.publish(tr, channel, payload)
		f.hears(reader, payload)
	}
	f.publish(tr, channel, "last")
	f.hearsAfterAll(reader, "last")
	f.hearsFirst(idle, transport.Event{Payload: "0"}, 100)
	f.eventually("the events after the first are dropped", func() bool { return len(idle.Events()) == 0 })
	f.publish(tr, channel, "new")
	f.hears(idle, "new")
}

var publishMany = transport.NewScript("publish_many", "for i = 1, tonumber(ARGV[3]) do redis.call(ARGV[1], KEYS[1], ARGV[2]) end return 1")

// stuckListener publishes, in one round trip, more data than a connection's buffers hold.
func stuckListener(f *fixture) {
	const messages, size = 3000, 4096
	tr, channel := f.open(), f.name()
	other := channel + ":other" // in the same slot, so delivered after earlier messages
	f.subscribe(tr, channel)    // never read
	reader, elsewhere := f.subscribe(tr, channel), f.subscribe(tr, other)
	filler := strings.Repeat("x", size)
	f.reply(tr, eval(publishMany, 1, channel, tr.PublishCommand(), filler, messages))
	f.publish(tr, other, "elsewhere")
	f.hears(elsewhere, "elsewhere")
	f.hearsFirst(reader, transport.Event{Payload: filler}, messages-1)
	f.recovers(tr)
	late := f.subscribe(tr, channel)
	f.publish(tr, channel, "late")
	f.hearsAfterAll(late, "late")
}

func publishedByScript(f *fixture) {
	tr, channel := f.open(), f.name()
	sub := f.subscribe(tr, channel)
	script := transport.NewScript("publish", "return redis.call(ARGV[1], KEYS[1], ARGV[2])")
	assert.Equal(f.t, int64(1), f.reply(tr, eval(script, 1, channel, tr.PublishCommand(), "from a script")))
	f.hears(sub, "from a script")
}

func endsOnServer(f *fixture) {
	const n = 50
	tr := f.open()
	var subs []transport.Subscription
	var names []string
	for i := range n {
		names = append(names, f.name())
		for range 1 + i%3 {
			subs = append(subs, f.subscribe(tr, names[i]))
		}
		assert.Positive(f.t, f.subscribers(tr, names[i]), "Subscribe has returned")
	}
	for _, sub := range subs {
		sub.Close()
	}
	for _, name := range names {
		f.unsubscribed(tr, name)
	}
}

func endedContext(f *fixture) {
	tr, channel := f.open(), f.name()
	ctx, cancel := context.WithCancel(f.t.Context())
	cancel()
	sub, err := tr.Subscribe(ctx, channel)
	assert.ErrorIs(f.t, err, context.Canceled)
	assert.Nil(f.t, sub)

	_, err = tr.Subscribe(f.within(-time.Second), channel)
	assert.ErrorIs(f.t, err, context.DeadlineExceeded)
	f.subscribe(tr, f.name()) // all pending commands were sent
	f.unsubscribed(tr, channel)

	works := f.subscribe(tr, channel)
	f.publish(tr, channel, "all the same")
	f.hears(works, "all the same")
}

func contextEndsWhileFrozen(f *fixture) {
	fresh, used := f.open(), f.open()
	channel, known := f.name(), f.name()
	sub := f.subscribe(used, known)
	thaw := f.freeze()
	for _, tr := range []transport.Transport{fresh, used, used, fresh} {
		ctx, began := f.within(50*time.Millisecond), time.Now()
		_, err := tr.Subscribe(ctx, channel)
		assert.ErrorIs(f.t, err, context.DeadlineExceeded)
		assert.Less(f.t, time.Since(began), atOnce)
	}
	thaw()
	f.unsubscribed(used, channel)
	f.publish(used, known, "still there")
	f.hears(sub, "still there")
	f.publish(fresh, channel, "for nobody")
	f.subscribe(fresh, channel)
}
