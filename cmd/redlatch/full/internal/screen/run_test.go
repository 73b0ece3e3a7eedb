package screen

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
)

// start runs the view. Until the next key, its goroutine is blocked.
func (s *shown) start() (ended chan error) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	ended = make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	s.t.Cleanup(cancel)
	s.wait(0)
	return ended
}

func (s *shown) wait(d time.Duration) string {
	time.Sleep(d)
	synctest.Wait()
	return s.text()
}

func (s *shown) hit(key tcell.Key, text string) string {
	s.screen.EventQ() <- tcell.NewEventKey(key, text, tcell.ModNone)
	return s.wait(2500 * time.Millisecond)
}

func TestEnterExplainsOneLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		s.server.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
		s.server.Do(t, "PEXPIRE", "orders:42", 600_000)
		program.Enqueue(t, s.server, "orders:42", program.RedissonOwner, time.Hour)
		ended := s.start()
		require.Regexp(t, `\n! orders:42 +>`, s.wait(3*time.Second))
		text := s.hit(tcell.KeyEnter, "")
		for _, want := range []string{" holds it. It is not yet known whether", "is\ndead and will block the queue", "HOLDERS  1\n", program.SomeOwner, "QUEUE  1\n", "    1  dead     Redisson ", program.RedissonOwner, "esc back"} {
			require.Contains(t, text, want)
		}
		s.server.Do(t, "DEL", "orders:42")
		text = s.wait(2 * time.Second)
		require.Contains(t, text, "It is free. The first in the queue")
		require.Contains(t, text, "HISTORY\n")
		require.Regexp(t, `\n! orders:42`, s.hit(tcell.KeyEsc, ""))
		s.screen.EventQ() <- tcell.NewEventKey(tcell.KeyRune, "q", tcell.ModNone)
		require.NoError(t, <-ended)
	})
}

func TestLostServerIsShownStaleUntilItAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		s.server.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
		s.start()
		require.Contains(t, s.wait(2*time.Second), "\nsorted by trouble\n")
		s.server.FailWith("LOADING not now")
		text := s.wait(20 * time.Second)
		require.Regexp(t, `\nSTALE, read (19|2\d) s ago: `, text)
		require.Contains(t, text, "! orders:42 ", "the last data stays")
		s.server.Heal()
		s.server.Do(t, "HSET", "later", program.SomeOwner, 1)
		text = s.wait(5 * time.Second)
		require.NotContains(t, text, "STALE")
		require.Contains(t, text, "later ")
	})
}

func TestOnlyShownDataIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		s.server.Do(t, "HSET", "a", program.SomeOwner, 1)
		s.start()
		s.wait(2 * time.Second)
		s.hit(tcell.KeyEnter, "")
		s.wait(10 * time.Second) // feeds go on for a while
		s.server.Do(t, "HSET", "b", program.SomeOwner, 1)
		s.wait(10 * time.Second)
		require.NotContains(t, s.text(), "STALE")
		require.Equal(t, 1, s.table.all.Total, "no scan while a lock is shown")
		require.Contains(t, s.hit(tcell.KeyEsc, ""), "2 locks")
	})
}

func TestDataAfterPauseIsNotStaleUntilScanFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 10)
		s.given(someLocks()...)
		s.keys(tcell.KeyEnter)
		time.Sleep(2 * time.Hour)
		s.keys(tcell.KeyEsc)
		require.Contains(t, s.text(), "\nread 2 h 0 min ago, reading again ...\n")
		s.set(s.table.all)
		require.NotContains(t, s.text(), "STALE", "the same data again")
		failed := *s.table.all
		failed.Err = io.EOF
		s.set(&failed)
		require.Contains(t, s.text(), "STALE, read 2 h 0 min ago: EOF")
		s.given(someLocks()...)
		time.Sleep(2 * time.Hour)
		require.Contains(t, s.text(), "STALE, read 2 h 0 min ago: the server does not answer", "no pause")
	})
}

func TestReleasedLockWithInvalidNameIsNotFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		s.server.Do(t, "HSET", "\xff", program.SomeOwner, 1)
		s.start()
		s.wait(2 * time.Second)
		require.Contains(t, s.hit(tcell.KeyEnter, ""), "HOLDERS  1\n")
		s.server.Do(t, "DEL", "\xff")
		require.Contains(t, s.wait(5*time.Second), "The last\nscan did not find it.")
	})
}

func TestLockBeyondLimitFollowsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		const limit = 64 // of locks that a board watches
		for i := range limit + 1 {
			s.server.Do(t, "HSET", fmt.Sprintf("lock-%02d", i), program.SomeOwner, 1)
		}
		s.start()
		s.wait(2 * time.Second)
		for range limit {
			for _, key := range []tcell.Key{tcell.KeyEnter, tcell.KeyEsc, tcell.KeyDown} {
				s.screen.EventQ() <- tcell.NewEventKey(key, "", tcell.ModNone)
				synctest.Wait()
			}
		}
		s.screen.EventQ() <- tcell.NewEventKey(tcell.KeyEnter, "", tcell.ModNone)
		require.Contains(t, s.wait(0), "\ntoo many locks were opened")
		text := s.wait(15 * time.Second)
		require.NotContains(t, text, "too many")
		require.Contains(t, text, "HOLDERS  1\n")
	})
}

func TestSignalEndsView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestLostTerminalEndsView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := show(t, 80, 24)
		ended := s.start()
		s.screen.EventQ() <- tcell.NewEventError(io.EOF)
		require.ErrorIs(t, <-ended, io.EOF)
	})
}
