package stress

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// Small campaigns, each with the faults and the habits that bring one kind of bug
// to light. They have a seed of their own, so that what they do is the same each
// time as far as it can be.

// focus returns the plan that they have in common: no fault, and plain habits.
func focus(t *testing.T) plan {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: a campaign needs a server and takes a quarter of a minute")
	}
	return plan{
		seed: 1, duration: 12 * time.Second, round: 6 * time.Second, gap: 1500 * ms,
		keys: locks(3, 3, short), workers: 2, callers: 6,
	}
}

// runAllFaults wages a campaign that must find nothing, and must have done something.
func runAllFaults(t *testing.T, p plan) *report {
	t.Helper()
	r := runCampaign(t, p)
	if !t.Failed() {
		assert.GreaterOrEqual(t, r.Acquisitions, cmp.Or(p.least, 6), "progress")
		for _, f := range p.kinds {
			assert.NotZero(t, r.Faults[f.name], "%s", f.name)
		}
	}
	return r
}

func TestHoldsEndTheirMarginBeforeTheirKeysCan(t *testing.T) {
	p := focus(t)
	p.habits = worker.Habits{Linger: 0.3, Fixed: 0.2, Reenter: 0.3}
	runAllFaults(t, p)
}

func TestALockThatIsUnlockedSlowlyIsNotLost(t *testing.T) {
	p := focus(t)
	p.kinds, p.gap = []*fault{slow}, 300*ms
	p.keys, p.workers = locks(12, 0, short), 3
	p.habits = worker.Habits{Linger: 0.7}
	runAllFaults(t, p)
}

func TestWaitersThatCouldNotListenTakeFreeLocksAtOnce(t *testing.T) {
	p := focus(t)
	// A caller that has had the lock does not come back for it, and so wakes no other.
	p.kinds, p.keys = []*fault{unsubscribedOnce}, locks(1, 0, long)
	p.habits = worker.Habits{Linger: 1, Rest: time.Minute}
	p.workers, p.callers = 6, 1
	p.duration, p.round = 24*time.Second, 12*time.Second
	p.least = 4 // a holder may stay for 4 s, and the last one of a round is cut short
	runAllFaults(t, p)
}

func TestCancelledWaitersLeaveTheQueue(t *testing.T) {
	p := focus(t)
	p.keys = locks(0, 2, short)
	p.habits = worker.Habits{Cancel: 0.6}
	runAllFaults(t, p)
}

func TestReadersShareAndWritersAreAlone(t *testing.T) {
	p := focus(t)
	p.keys = rwLocks(2, short)
	p.habits = worker.Habits{Reenter: 0.4, Cancel: 0.1, Linger: 0.02}
	p.callers = 10
	runAllFaults(t, p)
}

func TestNoMorePermitsAreOutThanWereSet(t *testing.T) {
	p := focus(t)
	p.kinds, p.gap = []*fault{cut, killed, stopped, unanswered}, 500*ms
	p.keys = semaphores(3, 1, []int{1, 3, 5}, short)
	p.habits = worker.Usual()
	p.habits.Replace, p.workers, p.callers = false, 3, 5
	p.duration, p.round = 9*time.Second, 9*time.Second
	if program, ok := findJava(t, release); ok {
		inexact(p.keys)
		p.java = []peer.Program{program}
	}
	r := runAllFaults(t, p)
	assert.Greater(t, r.Stocks, 10, "semaphores were counted")
}

func TestRepliesThatAreCutCountOnce(t *testing.T) {
	p := focus(t)
	p.kinds, p.gap = []*fault{cut}, 200*ms
	p.keys = locks(12, 0, middling)
	runAllFaults(t, p)
}

func TestRequestsThatComeLateLeaveNoLockBehind(t *testing.T) {
	p := focus(t)
	p.kinds, p.modest = []*fault{lateOne}, true
	p.keys = locks(24, 0, long)
	runAllFaults(t, p)
}

func TestCancelledWaitersLeaveNoOtherAsleep(t *testing.T) {
	p := focus(t)
	p.keys = locks(1, 0, long)
	p.habits = worker.Habits{Cancel: 0.985, Together: 0.7}
	p.workers, p.callers = 1, 60
	p.duration, p.round = 24*time.Second, 8*time.Second
	runAllFaults(t, p)
}

func TestProofsOfAForgottenLockAreRefused(t *testing.T) {
	p := focus(t)
	p.kinds, p.forgets = []*fault{deleted}, true
	p.keys, p.gap = locks(4, 0, forgetful), 500*ms
	p.habits = worker.Habits{Reenter: 0.9, Linger: 0.3}
	runAllFaults(t, p)
}
