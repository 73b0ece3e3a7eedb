package rfairlock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// wordsBetween returns the words of the operator's manual between two texts.
func wordsBetween(t *testing.T, from, to string) []any {
	t.Helper()
	manual, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(manual), from)
	require.True(t, found, "the manual no longer has %q", from)
	text, _, found = strings.Cut(text, to)
	require.True(t, found)
	var words []any
	for word := range strings.FieldsSeq(text) {
		words = append(words, word)
	}
	return words
}

// documentedUser makes the manual's user who may take fair locks. It returns the
// user's URL.
func documentedUser(t *testing.T, s *redistest.Server) string {
	t.Helper()
	user := append([]any{"SETUSER", "locks"}, wordsBetween(t, "\nACL SETUSER locks ", "```")...)
	s.Do(t, "ACL", append(user, wordsBetween(t, "keep their queue, and its two keys:\n  ```", "```")...)...)
	return "redis://locks:password@" + s.Addr()
}

// everything uses what a fair lock has, and returns the first error.
func everything(t *testing.T, url, name string) error {
	t.Helper()
	client, err := redlatch.Open(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	l := rfairlock.New(client, name)
	hold, err := l.TryLock(t.Context())
	if err != nil {
		return err
	}
	again, err := l.Lock(hold.Context(t.Context()))
	if err != nil {
		return err
	}
	if err := again.Unlock(); err != nil {
		return err
	}
	waited := make(chan error, 2)
	for range 2 { // the first one leaves from in front of the other
		go func() {
			_, err := l.Lock(t.Context(), rlock.WithWait(300*time.Millisecond))
			waited <- err
		}()
	}
	for range 2 {
		if err := <-waited; !errors.Is(err, redlatch.ErrNotAcquired) {
			return err
		}
	}
	if _, err = l.Inspect(t.Context()); err != nil {
		return err
	}
	next := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { next <- l.Do(ctx, func(context.Context) error { return nil }) }()
	require.Eventually(t, func() bool {
		in, err := l.Inspect(ctx)
		return len(next) > 0 || err == nil && len(in.Queue) == 1
	}, 10*time.Second, time.Millisecond)
	if err := hold.Unlock(); err != nil {
		return err
	}
	if err := <-next; err != nil {
		return err
	}
	_, err = l.ForceUnlock(t.Context())
	return err
}

func TestU42DocumentedUserMayDoEverythingWithAFairLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := documentedUser(t, s)
	for _, name := range []string{"app:" + redistest.Key(t), "{app:" + redistest.Key(t) + "}:in-braces"} {
		require.NoError(t, everything(t, url, name))
		require.Empty(t, s.Channels(t))
	}
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}
