package acquire_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

// stopped is a kind that sends the time, as the permit kind does, before the process is paused.
type stopped struct{ told time.Time }

func (*stopped) Name() string       { return "stopped" }
func (*stopped) Key() string        { return "key" }
func (*stopped) Channel(any) string { return "channel" }

func (k *stopped) Acquire(c *transport.Call, _ *acquire.Request) {
	k.told = time.Now()
	c.Command = "PING"
	time.Sleep(5 * time.Second)
}

func (*stopped) Decode(any) (acquire.Outcome, error) { return acquire.Outcome{Granted: true}, nil }

// granted is a claim that records when its attempt was sent, and its calls.
type granted struct {
	acquire.BareClaim
	sent  time.Time
	calls string
}

func (g *granted) Claim(acquire.Reusable) acquire.Claim { return g }
func (*granted) Disown()                                {}
func (*granted) Late(any, error) *engine.InDoubt        { return nil }

func (g *granted) Asks(yes bool) {
	if yes {
		g.calls += "asks "
	} else {
		g.calls += "done"
	}
}

func (g *granted) Request() *acquire.Request {
	g.calls = strings.TrimSuffix(g.calls, "request ") + "request " // there may be several
	return &acquire.Request{}
}

func (g *granted) Grant(sent time.Time, _ acquire.Outcome) error {
	g.sent = sent
	g.calls += "grant "
	return nil
}

type alone struct{}

func (alone) Waiter(*acquire.Acquisition) acquire.Waiter { return acquire.Alone() }

// answering returns an engine whose server replies nil, or an error.
func answering(reply func() error) *engine.Engine {
	return engine.New(engine.Config{
		Transport: &faketransport.Fake{Answer: func(*faketransport.SentCall) (any, error, bool) { return nil, reply(), true }},
		ClientID:  uuid.New(), Lease: 30 * time.Second, Command: 3 * time.Second, PollCap: time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
}

// The server computes the end of the lease from the time in the call.
func TestLeaseStartsBeforeServerGetsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := answering(func() error { return nil })
		k, g := &stopped{}, &granted{}
		a := acquire.Acquisition{Engine: e, Kind: k, Lock: "key", Claims: g, Began: time.Now()}
		require.NoError(t, a.Run(t.Context(), alone{}))
		require.False(t, g.sent.After(k.told), "the lease counts %v longer here than on the server", g.sent.Sub(k.told))
		require.NoError(t, e.Close())
	})
}

// Between the attempt and the hold, no release of the same owner may miss its lease.
func TestAcquireBracketsAttemptAndGrant(t *testing.T) {
	t.Parallel()
	for end, refusal := range map[string]error{"grant ": nil, "": errors.New("refused")} {
		synctest.Test(t, func(t *testing.T) {
			g := &granted{}
			e := answering(func() error { g.calls += "sent "; return refusal })
			a := acquire.Acquisition{Engine: e, Kind: &stopped{}, Lock: "key", Claims: g, Began: time.Now()}
			require.ErrorIs(t, a.Run(t.Context(), alone{}), refusal)
			require.Equal(t, "asks request sent "+end+"done", g.calls)
			require.NoError(t, e.Close())
		})
	}
}
