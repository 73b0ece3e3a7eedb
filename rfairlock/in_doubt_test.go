package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// noFence are the rights of a user that can neither kill connections nor read their IDs.
var noFence = []any{"SETUSER", "default", "on", "nopass", "~*", "&*", "+@all", "-client|kill", "-client|id", "-client|info", "-client|list"}

// fenced runs a test with and without the right to kill connections, behind a network that delivers
// held bytes even after the client has closed the connection.
func fenced(t *testing.T, body func(t *testing.T, s *redistest.Server, p *redistest.Proxy)) {
	t.Helper()
	for name, rights := range map[string][]any{"fence": nil, "no fence": noFence} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			p.KeepHalfDead(true)
			if rights != nil {
				s.Do(t, "ACL", rights...)
			}
			body(t, s, p)
		})
	}
}

func TestU26LostReplyOfTheFirstAcquireLeavesNoQueueEntry(t *testing.T) {
	t.Parallel()
	fenced(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
		t.Helper()
		client := connect(t, p.URL(), noPoll())
		loadScripts(t, client)
		l := rfairlock.New(client, redistest.Key(t))
		p.Blackhole(redistest.ToClient)
		b := unsubscribedBetween(t.Context(), t, s, l, rlock.WithWait(forever))
		p.Reset()
		p.Heal()
		require.ErrorIs(t, b.w.failed(t, promptly), redlatch.ErrUncertain)
		b.requireGone(t, forever)
	})
}

// The waiter queues again with a new owner.
func TestU26LostReplyOfALaterAcquireCostsTheQueueEntryAndLeavesNone(t *testing.T) {
	t.Parallel()
	fenced(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
		t.Helper()
		client := connect(t, p.URL(), noPoll())
		loadScripts(t, client)
		ctx, cancel := context.WithCancel(t.Context())
		b := queueBetween(ctx, t, s, rfairlock.New(client, redistest.Key(t)), rlock.WithWait(forever))
		held := p.HoldMatching(redistest.ToClient, "*4\r\n") // a refusal
		s.Do(t, "PUBLISH", codec.OwnerChannel(b.l.Name(), b.owner), codec.MessageUnlock)
		awaitClosed(t, held.Seen(), "the reply")
		p.Reset()
		b.requireGoneBut(t, forever)
		queue := awaitAsleep(t, s, b.l.Name(), 3)
		require.Equal(t, []string{foreignHead, foreignTail}, queue[:2])
		b.w.stillWaits(t)
		cancel()
		require.ErrorIs(t, b.w.failed(t, promptly), context.Canceled)
		b.owner, b.deadlines = queue[2], deadlinesOf(t, s, b.l.Name())
		b.requireGone(t, 0) // no waiter was behind it
	})
}

func TestU26AcquireThatComesAfterItsCallerLeftLeavesNoQueueEntry(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p, client := through(t, s)
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, s, l.Name(), forever)
	held := p.HoldMatching(redistest.ToServer, l.Name())
	ctx, cancel := context.WithCancel(t.Context())
	w := await(ctx, l)
	awaitClosed(t, held.Seen(), "the acquire")
	cancel()
	err := w.failed(t, promptly)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	held.Release()
	until(t, soon, "the acquire came", func() bool { return p.Holding(redistest.ToServer) == 0 })
	requireNoneQueued(t, s, l.Name())
}

// requireNoneQueued checks that the queue becomes and stays empty.
func requireNoneQueued(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	empty := func() bool { return len(queueOf(t, s, name))+len(deadlinesOf(t, s, name)) == 0 }
	until(t, gone, "no place is left", empty)
	for range 20 {
		<-time.After(5 * time.Millisecond)
	}
	require.True(t, empty())
}

// The acquire arrives long after its connection was closed.
func TestU26InDoubtAcquireLeavesNoQueueEntry(t *testing.T) {
	t.Parallel()
	fenced(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy) {
		t.Helper()
		client := connect(t, p.URL())
		loadScripts(t, client)
		l := rfairlock.New(client, redistest.Key(t))
		holdByHand(t, s, l.Name(), forever)
		held := p.HoldMatching(redistest.ToServer, l.Name())
		w := await(t.Context(), l)
		awaitClosed(t, held.Seen(), "the acquire")
		before := s.CommandStats(t)["lrem"]
		p.Reset()
		require.ErrorIs(t, w.failed(t, promptly), redlatch.ErrUncertain)
		until(t, soon, "it was asked about", func() bool { return s.CommandStats(t)["lrem"] > before })
		held.Release()
		until(t, soon, "delivery", func() bool { return p.Holding(redistest.ToServer) == 0 })
		requireNoneQueued(t, s, l.Name())
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s, l.Name()))
	})
}

func TestU26LateGrantGoesToTheNextInTheQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p, client := through(t, s, noPoll())
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, s, l.Name(), forever)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := queueUp(ctx, t, s, l, 1)[0]
	stayer := queueUp(t.Context(), t, s, rfairlock.New(connect(t, s.URL(), noPoll()), l.Name()), 1)[0]
	held := p.HoldMatching(redistest.ToClient, "$-1\r\n") // the grant
	freeByHand(t, s, l.Name())
	awaitClosed(t, held.Seen(), "the grant")
	cancel()
	require.ErrorIs(t, leaver.failed(t, promptly), context.Canceled)
	stayer.stillWaits(t)
	held.Release()
	require.NoError(t, stayer.acquired(t, promptly).Unlock())
	requireNoTrace(t, s, l.Name())
}

// The server is paused for longer than any command may take.
func TestU26WaitersThatLeaveAFrozenServerAreGoneWhenItWakes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithCommandTimeout(time.Second))
	loadScripts(t, client)
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, s, l.Name(), forever)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := queueUp(ctx, t, s, l, 5)
	timed := queueUp(t.Context(), t, s, l, 2, rlock.WithWait(2*time.Second))
	s.Pause()
	for range 5 {
		waiting = append(waiting, await(ctx, l))
	}
	cancel()
	for _, w := range waiting {
		require.ErrorIs(t, w.failed(t, promptly), context.Canceled)
	}
	for _, w := range timed {
		// Uncertain if the attempt after the subscription was not answered before the pause.
		_ = w.failed(t, 2*time.Second+promptly)
	}
	<-time.After(2 * time.Second)
	s.Resume()
	requireNoneQueued(t, s, l.Name())
	freeByHand(t, s, l.Name())
	requireNoTrace(t, s, l.Name())
}

func TestU26GiveUpThatIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s, noPoll())
	ctx, cancel := context.WithCancel(t.Context())
	b := queueBetween(ctx, t, s, rfairlock.New(client, redistest.Key(t)))
	p.Blackhole(redistest.ToServer)
	cancel()
	require.ErrorIs(t, b.w.failed(t, promptly), context.Canceled)
	until(t, soon, "the give-up is sent", func() bool { return p.Holding(redistest.ToServer) > 0 })
	p.Reset()
	p.Heal()
	b.requireGone(t, fairWait)
}
