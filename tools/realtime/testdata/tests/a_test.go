package a

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep(t *testing.T) { time.Sleep(1) } // sleeps

func TestCallOfSleeper(t *testing.T) { outer() } // sleeps

func TestMethodValueOfSleeper(t *testing.T) { t.Run("", sleeper{}.test) } // sleeps

func TestElapsed(t *testing.T) { // measures time
	if time.Since(time.Now()) > time.Second {
		t.Fail()
	}
}

func TestShortLease(t *testing.T) { // holds a short lease
	const short = 9 * time.Second
	WithLease(short)
}

func TestLongLease(t *testing.T) { WithLease(10 * time.Second) }

func TestProduct(t *testing.T) { nap() }

func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { outer() })
}

func TestInBubbleOfHelper(t *testing.T) {
	bubble(t, 1, func(t *testing.T) { time.Sleep(1) })
}

func TestOutsideBubbleOfHelper(t *testing.T) { // measures time
	bubble(t, time.Until(time.Now()), func(t *testing.T) {})
}

func TestTableOfBubbles(t *testing.T) {
	for _, test := range []struct{ do func(*testing.T) }{{func(*testing.T) { time.Sleep(1) }}} {
		t.Run("", func(t *testing.T) { synctest.Test(t, test.do) })
	}
}

func TestBubbleAndSleep(t *testing.T) { // sleeps
	synctest.Test(t, func(t *testing.T) { cancel := func() {}; cancel() })
	time.Sleep(1)
}

func bubble(t *testing.T, _ time.Duration, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1)
		f(t)
	})
}

func outer() { inner() }
func inner() { time.Sleep(1) }

type sleeper struct{}

func (sleeper) test(*testing.T) { time.Sleep(1) }
