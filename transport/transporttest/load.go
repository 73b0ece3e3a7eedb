package transporttest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/transport"
)

var loadCases = []testCase{
	{"every call ends once, with its own reply", func(f *fixture) { underLoad(f, false) }},
	{"every call ends once, with its own reply, while connections are cut", func(f *fixture) { underLoad(f, true) }},
}

const (
	loadCallers = 40
	loadEach    = 250
	cutEvery    = 15 * time.Millisecond
)

var add = transport.NewScript("add", "return redis.call('hincrby', KEYS[1], ARGV[1], ARGV[2])")

// loadCall adds a number of its own to a field of its own. The reply tells
// whose it is, and the field how often the call ran.
type loadCall struct {
	id        int
	withdrawn bool
	outcome   outcome
	ended     bool
}

func (c *loadCall) number() int64 { return int64(1_000_000 + c.id) }

// load is what one case with many calls keeps.
type load struct {
	f     *fixture
	tr    transport.Transport
	key   string
	calls []loadCall
	left  atomic.Int64 // callers at work
}

func underLoad(f *fixture, cut bool) {
	if cut {
		f.need("CutConnections", f.h.CutConnections != nil)
	}
	l := &load{f: f, tr: f.opened(), key: f.name(), calls: make([]loadCall, loadCallers*loadEach)}
	for i := range l.calls {
		l.calls[i].id = i
	}
	var callers sync.WaitGroup
	l.left.Store(loadCallers)
	for c := range loadCallers {
		callers.Go(func() {
			defer l.left.Add(-1)
			l.caller(l.calls[c*loadEach : (c+1)*loadEach])
		})
	}
	cuts := 0
	for l.left.Load() > 0 {
		<-time.After(cutEvery)
		if cut {
			f.h.CutConnections(f.t)
			cuts++
		}
		if rand.IntN(3) == 0 { //nolint:gosec // a test's dice
			f.h.Do(f.t, "SCRIPT", "FLUSH")
		}
	}
	callers.Wait()
	f.recovers(l.tr)
	tally := l.check()
	f.t.Logf("%d cuts: %v", cuts, tally)
	if cut {
		assert.NotZero(f.t, tally[uncertain], "the cuts hit nothing")
	} else {
		assert.Zero(f.t, tally[uncertain], "nothing was cut")
	}
}

// caller starts its calls in bursts, withdraws some, and waits for each burst.
func (l *load) caller(mine []loadCall) {
	for at := 0; at < len(mine); {
		burst := mine[at:min(at+1+rand.IntN(8), len(mine))] //nolint:gosec // a test's dice
		var ends []*pending
		for i := range burst {
			ends = append(ends, l.one(&burst[i]))
		}
		for i, p := range ends {
			select {
			case burst[i].outcome = <-p.came:
				burst[i].ended = true
			case <-time.After(l.f.h.Patience):
				return // check tells
			}
		}
		at += len(burst)
	}
}

// one starts one call, and perhaps abandons it at once or a little later.
func (l *load) one(c *loadCall) *pending {
	field := strconv.Itoa(c.id)
	call := command("HINCRBY", 1, l.key, field, c.number())
	if c.id%2 == 0 {
		call = eval(add, 1, l.key, field, c.number())
	}
	dice := rand.IntN(16) //nolint:gosec // a test's dice
	call.Urgent = dice%4 == 0
	p := l.f.start(l.tr, call)
	switch dice {
	case 0, 1:
		c.withdrawn = call.Abandon()
	case 2, 3:
		<-time.After(time.Duration(rand.IntN(300)) * time.Microsecond) //nolint:gosec // a test's dice
		c.withdrawn = call.Abandon()
	}
	return p
}

// check compares what the callers were given with what the server did.
func (l *load) check() map[class]int {
	tally, faults := map[class]int{}, map[string]int{}
	ran := l.runs()
	for i := range l.calls {
		c := &l.calls[i]
		was := classify(c.outcome.err)
		tally[was]++
		if fault := c.fault(was, ran[i]); fault != "" {
			faults[fault]++
		}
	}
	assert.Empty(l.f.t, faults, "what went wrong, and how often")
	return tally
}

// fault returns what is wrong with one call that ran so often.
func (c *loadCall) fault(was class, ran int64) string {
	switch {
	case !c.ended:
		return "no outcome"
	case ran > 1:
		return "ran more than once"
	case c.withdrawn && was != notSent:
		return "withdrawn, and not ended as not sent"
	case was == notSent && ran != 0:
		return "ended as not sent, and ran"
	case was == answered && c.outcome.reply != any(c.number()):
		return "another call's reply"
	case was == answered && ran != 1:
		return "answered, and did not run"
	case was == serverError || was == outside:
		return "the error " + c.outcome.err.Error()
	}
	return ""
}

// runs asks the server how often each call ran.
func (l *load) runs() []int64 {
	const chunk = 500
	ran := make([]int64, len(l.calls))
	for from := 0; from < len(ran); from += chunk {
		args := []any{l.key}
		for i := from; i < min(from+chunk, len(ran)); i++ {
			args = append(args, strconv.Itoa(i))
		}
		sums, _ := plain(l.f.h.Do(l.f.t, "HMGET", args...)).([]any)
		for i, sum := range sums {
			c := &l.calls[from+i]
			if sum == nil {
				continue
			}
			n, err := strconv.ParseInt(fmt.Sprint(sum), 10, 64)
			assert.NoError(l.f.t, err)
			assert.Zero(l.f.t, n%c.number(), "call %d wrote to another's field", c.id)
			ran[from+i] = n / c.number()
		}
	}
	return ran
}
