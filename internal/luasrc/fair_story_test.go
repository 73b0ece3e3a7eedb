package luasrc

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// fairStory is a story about fair locks, call by call, since what a call
// must do depends on what those before it have answered.
type fairStory struct {
	name string
	tell func(f *telling)
}

// telling is one story on its way. Each step is a call; gives, which checks the
// reply; tells, where messages are due; and leaves, which checks messages and
// state. After the first difference nothing is done any more.
type telling struct {
	*stage
	l       string // the lock
	publish string // the command to publish with
	err     error

	steps  int
	does   string
	reply  any
	failed error    // the error that the call has answered with
	due    []string // messages that leaves is to find
	open   bool     // a step that leaves has not ended
}

// tellFair returns the first difference between a story and what happened.
func (s *stage) tellFair(story fairStory) error {
	s.t.Helper()
	f := &telling{stage: s, l: redistest.Key(s.t), publish: "PUBLISH"}
	story.tell(f)
	f.done()
	if f.err != nil {
		f.messagesSince() // what this story has not looked at is not the next one's
		return fmt.Errorf("%s, step %d, %s: %w", story.name, f.steps, f.does, f.err)
	}
	return nil
}

// step begins a step.
func (f *telling) step(v vector) *telling {
	f.done()
	if f.err != nil {
		return f
	}
	f.steps++
	f.does, f.due, f.open = v.does, nil, true
	f.reply, f.failed = f.run(v)
	return f
}

// done holds that no step is left half-checked: such a story proves nothing.
func (f *telling) done() {
	if f.err == nil && f.open {
		f.err = errors.New("the story does not say what the step leaves")
	}
}

// gives checks the reply and returns it, if it is a number.
func (f *telling) gives(want any) int64 {
	if f.err == nil {
		f.err = differs("reply", want, replyOf(f.reply, f.failed, want))
	}
	n, _ := f.reply.(int64)
	return n
}

// costs checks the commands that a script has run, where the server shows them.
func (f *telling) costs(calls string) *telling {
	if f.err == nil && f.monitor != nil {
		f.err = differs("calls", calls, f.calls)
	}
	return f
}

// tells announces the owners that the step must wake, in order.
func (f *telling) tells(owners ...string) {
	for _, owner := range owners {
		f.due = append(f.due, codec.OwnerChannel(f.l, owner)+" "+codec.MessageUnlock)
	}
}

// leaves ends a step: it checks that exactly the expected owners were woken, and
// that the keys are these.
func (f *telling) leaves(states ...map[string]any) {
	if f.err != nil {
		return
	}
	f.err = f.leftDiffers(f.l, f.due, also(states...))
	f.open = false
}

// command runs a plain command, for which nothing is checked.
func (f *telling) command(name string, args ...any) {
	f.step(command(name, args...))
	f.open = false
	if f.err == nil {
		require.NoError(f.t, f.failed, name)
	}
}

// entry is a waiter and its deadline.
type entry struct {
	owner    string
	deadline int64
}

// entries is a state of queue and timeouts that agree.
func (f *telling) entries(all ...entry) map[string]any {
	var q queue
	t := timeouts{}
	for _, s := range all {
		q, t[s.owner] = append(q, s.owner), float64(s.deadline)
	}
	return also(f.queue(q...), f.timeouts(t))
}

func (f *telling) queue(owners ...string) map[string]any {
	if len(owners) == 0 {
		return nothing
	}
	return map[string]any{codec.QueueKey(f.l): queue(owners)}
}

func (f *telling) timeouts(t timeouts) map[string]any {
	if len(t) == 0 {
		return nothing
	}
	return map[string]any{codec.TimeoutKey(f.l): t}
}

// enqueue fills queue and timeouts, as if these waiters had come.
func (f *telling) enqueue(all ...entry) {
	push, add := []any{codec.QueueKey(f.l)}, []any{codec.TimeoutKey(f.l)}
	for _, s := range all {
		push, add = append(push, s.owner), append(add, s.deadline, s.owner)
	}
	f.command("RPUSH", push...)
	f.command("ZADD", add...)
}

// heldBy is a state of the lock, with the lease that the calls here give.
func (f *telling) heldBy(owner, count string) map[string]any {
	return lock(f.l, fairLease, owner, count)
}

// fairLease is the lease of all calls here that do not say another.
const fairLease = 30000

// fairLock fills calls about a fair lock.
func fairLock(l, publish string) *Fair {
	return &Fair{
		Key: l, Queue: codec.QueueKey(l), Timeouts: codec.TimeoutKey(l), Channel: codec.LockChannel(l), Publish: publish,
	}
}

func (f *telling) fair(does string, fill func(l *Fair, c *transport.Call)) *telling {
	return f.step(filled(does, func(c *transport.Call) { fill(fairLock(f.l, f.publish), c) }))
}

// withoutDetails makes the refusal of a call say no more than a number.
func withoutDetails(c *transport.Call) { c.Args = c.Args[:len(c.Args)-1] }

func (f *telling) try(owner string, now, wait int64) *telling {
	return f.fair("try by "+owner, func(l *Fair, c *transport.Call) { l.Try(c, now, owner, wait, fairLease); withoutDetails(c) })
}

func (f *telling) acquire(owner string, now, wait int64) *telling {
	return f.fair("acquire by "+owner, func(l *Fair, c *transport.Call) { l.Acquire(c, now, owner, wait, fairLease); withoutDetails(c) })
}

func (f *telling) reenter(owner string, now, lease, target int64) *telling {
	return f.fair("enter again by "+owner, func(l *Fair, c *transport.Call) { l.Reenter(c, now, owner, lease, target) })
}

func (f *telling) release(owner string, now, target int64) *telling {
	return f.fair("release by "+owner, func(l *Fair, c *transport.Call) { l.Release(c, now, owner, fairLease, target) })
}

func (f *telling) releaseShared(owner string, now int64) *telling {
	return f.fair("shared release by "+owner, func(l *Fair, c *transport.Call) {
		l.ReleaseShared(c, codec.LatchKey(f.l, requestID), now, owner, fairLease)
	})
}

func (f *telling) force(now int64) *telling {
	return f.fair("force release", func(l *Fair, c *transport.Call) { l.ForceRelease(c, now) })
}

// leaver is an owner that gives up, with its wait.
type leaver struct {
	owner string
	wait  int64
}

func (f *telling) giveUp(owner string, now, wait int64, more ...leaver) *telling {
	return f.fair("give up by "+owner, func(l *Fair, c *transport.Call) {
		l.GiveUp(c, now, owner, wait)
		for _, other := range more {
			l.GiveUp(c, now, other.owner, other.wait)
		}
	})
}

func TestFairScriptsDoWhatTheVectorsSay(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		tellAllFair(t, target, fairStories())
		t.Run("long", func(t *testing.T) {
			testlevel.All(t, "queues of thousands")
			tellAllFair(t, target, fairLongStories())
		})
	})
}

func tellAllFair(t *testing.T, target redistest.Target, stories []fairStory) {
	t.Helper()
	s := newStage(t, target)
	for _, story := range stories {
		require.NoError(t, s.tellFair(story))
	}
}

// A check of the check: stories that say something else must be noticed.
func TestStoriesThatAreWrongAreNoticed(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t))
	const o = ownerA
	for name, tell := range map[string]func(f *telling){
		"reply":   func(f *telling) { f.try(o, 1, 1).gives(int64(1)); f.leaves(f.heldBy(o, "1")) },
		"count":   func(f *telling) { f.try(o, 1, 1).gives(nil); f.leaves(f.heldBy(o, "2")) },
		"lease":   func(f *telling) { f.try(o, 1, 1).gives(nil); f.leaves(lock(f.l, 60000, o, "1")) },
		"cost":    func(f *telling) { f.try(o, 1, 1).costs("EXISTS"); f.leaves(f.heldBy(o, "1")) },
		"unheard": func(f *telling) { f.try(o, 1, 1).gives(nil); f.tells(o); f.leaves(f.heldBy(o, "1")) },
		"unsaid": func(f *telling) {
			f.enqueue(entry{o, 5})
			f.release(o, 1, 0).gives(int64(2))
			f.leaves(f.entries(entry{o, 5}))
		},
		"order": func(f *telling) {
			f.enqueue(entry{o, 5}, entry{ownerB, 5})
			f.try(ownerC, 1, 1)
			f.leaves(f.entries(entry{ownerB, 5}, entry{o, 5}))
		},
		"deadline": func(f *telling) {
			f.enqueue(entry{o, 5})
			f.try(ownerB, 1, 1).gives(int64(1))
			f.leaves(f.entries(entry{o, 6}))
		},
		"expiry": func(f *telling) {
			f.enqueue(entry{o, 5})
			f.command("PEXPIRE", codec.QueueKey(f.l), 9999)
			f.try(ownerB, 1, 1)
			f.leaves(f.entries(entry{o, 5}))
		},
		"half a step": func(f *telling) { f.try(o, 1, 1).gives(nil) },
	} {
		require.Error(t, s.tellFair(fairStory{name, tell}), name)
	}
}
