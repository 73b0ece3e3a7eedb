package acl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// What is merely worse without a right is said once, and says which right it is.
func TestU42RightThatIsMissedIsNamedInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missing string
		line    string // what it begins with
		names   string // what says which right it is
		use     func(x *trial) error
		opts    []redlatch.Option
	}{
		{"+time", "the server's clock cannot be read", `right=+time`, (*trial).waitsForLong, nil},
		{"+client|setname", "the server does not name", `right=+client|setname`, (*trial).reconnects,
			[]redlatch.Option{redlatch.WithClientName("with-a-name")}},
		{"+client|id", "calls in doubt cannot be fenced", `right=+client|id`, (*trial).callsInDoubt, nil},
		{"+client|info", "connections are killed by their id alone", `right=+client|info`, (*trial).callsInDoubt, nil},
		{"+client|kill", "calls in doubt cannot be fenced", `right=+client|kill`, (*trial).callsInDoubt, nil},
		{"+pubsub|numsub", "waiters of other processes cannot be counted", "PUBSUB", (*trial).takesTurns, nil},
		{"+role", "waiters of other processes cannot be counted", "ROLE", (*trial).takesTurns, nil},
		{"+pubsub|numsub", "dead waiters of fair locks cannot be distinguished", "PUBSUB", (*trial).waitsForLong, nil},
		{"+role", "dead waiters of fair locks cannot be distinguished", "ROLE", (*trial).waitsForLong, nil},
	} {
		t.Run(fmt.Sprintf("%s %s", c.missing, c.line), func(t *testing.T) {
			t.Parallel()
			rights := everything(t)
			i := slices.Index(rights, any(c.missing))
			require.Positive(t, i)
			var lines []string
			wrong := try(t, redistest.Start(t), slices.Delete(rights, i, i+1), func(x *trial) error {
				err := c.use(x)
				lines = slices.DeleteFunc(x.log.Lines(refusals...), func(line string) bool {
					return strings.Contains(line, "level=DEBUG")
				})
				return err
			}, c.opts...)
			require.Len(t, lines, 1, "%v", wrong)
			require.Contains(t, lines[0], "level=WARN msg=\"redlatch: "+c.line)
			require.Contains(t, lines[0], c.names)
			require.ErrorContains(t, wrong, lines[0], "and nothing else went wrong")
		})
	}
}

// waitsForLong waits for a fair lock until it is time to compare the clocks and to
// count subscribers.
func (x *trial) waitsForLong() error {
	l := rfairlock.New(x.client, x.names()[0])
	x.heldByHand(l.Name())
	x.queuedByHand(l.Name(), map[string]time.Duration{foreign: time.Hour}, foreign)
	w := x.await(l)
	err := x.patiently("something is refused", func() bool { return x.refused() != nil })
	w.cancel()
	<-w.done
	return err
}

// reconnects loses its connections twice.
func (x *trial) reconnects() error {
	for range 2 {
		x.server.KillClients(x, "normal")
		err := x.patiently("it is back", func() bool {
			_, err := rlock.New(x.client, x.names()[0]).IsLocked(x.Context())
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takesTurns passes a lock on within the process for as long as others would be let
// go first, several times.
func (x *trial) takesTurns() error {
	l := rlock.New(x.client, x.names()[0])
	ended := make(chan error)
	for range 200 {
		w := x.awaitFor(l, 6*soon) // for the turns of all before it
		go func() { ended <- w.unlock() }()
	}
	var all error
	for range 200 {
		all = errors.Join(all, <-ended)
	}
	return all
}
