package transporttest

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var closeCases = []testCase{
	{"Close may be called twice, concurrently, and without calls", closeTwice, ""},
	{"Start after Close ends as not sent", startAfterClose, ""},
	{"Close ends calls in flight as uncertain", closeInFlight, "HoldReplies"},
	{"Close ends every call before it returns, and none that ended as not sent runs", closeWhileFrozen, "Freeze"},
	{"every call ends while Close runs concurrently", closeAmongCallers, ""},
	{"Close ends subscriptions", closeSubscriptions, ""},
	{"Close ends a Subscribe that waits", closeWaitingSubscribe, "Freeze"},
}

func closeTwice(f *fixture) {
	f.close(f.open())
	tr := f.opened()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { assert.NoError(f.t, tr.Close()) })
	}
	wg.Wait()
	f.close(tr)
}

func startAfterClose(f *fixture) {
	unused, used := f.open(), f.opened()
	f.subscribe(used, f.name())
	for _, tr := range []transport.Transport{unused, used} {
		f.close(tr)
		for range 2 {
			o := f.do(tr, command("ECHO", 0, "too late"))
			f.isNotSent(o)
			assert.ErrorIs(f.t, o.err, transport.ErrClosed)
			_, err := tr.Subscribe(f.t.Context(), f.name())
			assert.ErrorIs(f.t, err, transport.ErrClosed)
		}
	}
}

func closeInFlight(f *fixture) {
	tr := f.opened()
	p, key, release := f.inFlight(tr)
	left, _ := f.ran(tr)
	assert.False(f.t, left.call.Abandon())
	f.close(tr)
	for _, p := range []*pending{p, left} {
		require.NotZero(f.t, p.runs.Load(), "Close has returned before the done of %s ran", p.call.Name())
		o := f.await(p)
		f.isUncertain(o)
		assert.ErrorIs(f.t, o.err, transport.ErrClosed)
	}
	release()
	assert.Equal(f.t, "1", f.value(key))
}

func closeWhileFrozen(f *fixture) {
	fresh, used := f.open(), f.opened()
	thaw := f.freeze()
	frozen := []*stranded{f.strand(fresh), f.strand(used)}
	<-time.After(50 * time.Millisecond) // give the calls time to block
	for _, s := range frozen {
		s.close(f)
	}
	thaw()
	f.recovers(f.open())
	for _, s := range frozen {
		s.check(f)
	}
}

type stranded struct {
	tr      transport.Transport
	key     string
	calls   []*pending
	notSent map[int]bool
}

func (f *fixture) strand(tr transport.Transport) *stranded {
	s := &stranded{tr: tr, key: f.name(), notSent: map[int]bool{}}
	for i := range 1000 {
		s.calls = append(s.calls, f.start(tr, command("HSET", 1, s.key, strconv.Itoa(i), "ran")))
	}
	return s
}

func (s *stranded) close(f *fixture) {
	f.t.Helper()
	f.close(s.tr)
	tally := map[class]int{}
	for i, p := range s.calls {
		require.NotZero(f.t, p.runs.Load(), "Close has returned before the done of call %d ran", i)
		o := f.await(p)
		require.ErrorIs(f.t, o.err, transport.ErrClosed)
		was := classify(o.err)
		tally[was]++
		s.notSent[i] = was == notSent
		require.Contains(f.t, []class{notSent, uncertain}, was, "%v", o.err)
	}
	f.t.Logf("%v", tally)
}

func (s *stranded) check(f *fixture) {
	f.t.Helper()
	f.during(50*time.Millisecond, "nothing ran that ended as not sent", func() bool {
		fields, _ := f.h.Do(f.t, "HKEYS", s.key).([]any)
		for _, field := range fields {
			i, err := strconv.Atoi(plain(field).(string))
			if err != nil || s.notSent[i] {
				return false
			}
		}
		return true
	})
}

func closeAmongCallers(f *fixture) {
	const callers, rounds = 8, 10
	for range rounds {
		tr, key := f.opened(), f.name()
		var wg sync.WaitGroup
		wrong := make(chan error, callers)
		for range callers {
			wg.Go(func() { wrong <- f.callUntilClosed(tr, key) })
		}
		<-time.After(pollEvery)
		f.close(tr)
		wg.Wait()
		for range callers {
			assert.NoError(f.t, <-wrong)
		}
	}
}

func (f *fixture) callUntilClosed(tr transport.Transport, key string) error {
	for {
		p := f.start(tr, eval(count, 1, key))
		select {
		case o := <-p.came:
			switch {
			case classify(o.err) == outside:
				return o.err
			case errors.Is(o.err, transport.ErrClosed):
				return nil
			}
		case <-time.After(f.h.Patience):
			return errors.New("a call has not ended")
		}
	}
}

func closeSubscriptions(f *fixture) {
	tr, channel := f.open(), f.name()
	subs := []transport.Subscription{f.subscribe(tr, channel), f.subscribe(tr, channel), f.subscribe(tr, f.name())}
	for _, sub := range subs {
		assert.NoError(f.t, sub.Err())
	}
	f.close(tr)
	for _, sub := range subs {
		select {
		case e, ok := <-sub.Events():
			assert.False(f.t, ok, "%+v", e)
		case <-time.After(f.h.Patience):
			f.t.Error("Events is not closed")
		}
		assert.ErrorIs(f.t, sub.Err(), transport.ErrClosed)
		sub.Close()
		assert.ErrorIs(f.t, sub.Err(), transport.ErrClosed)
	}
	f.unsubscribed(tr, channel)
}

func closeWaitingSubscribe(f *fixture) {
	fresh, used := f.open(), f.open()
	f.subscribe(used, f.name())
	thaw := f.freeze()
	ended := make(chan error, 4)
	for _, tr := range []transport.Transport{fresh, fresh, used, used} {
		go func() {
			_, err := tr.Subscribe(f.t.Context(), f.name())
			ended <- err
		}()
	}
	f.during(50*time.Millisecond, "Subscribe waits for the server", func() bool { return len(ended) == 0 })
	f.close(fresh)
	f.close(used)
	for range cap(ended) {
		assert.ErrorIs(f.t, receive(f, ended, "Subscribe does not end"), transport.ErrClosed)
	}
	thaw()
}
