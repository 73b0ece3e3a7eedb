package loss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func needsServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server, and -short asks for tests without")
	}
}

// lease is the shortest that a busy machine can hold.
const lease = 3 * time.Second

// plan is a small one.
func plan(clients ...Client) Plan {
	return Plan{
		Clients: clients, Ways: Ways(), Leases: []time.Duration{lease}, Holds: 6, Rounds: 1, Log: io.Discard,
	}
}

func TestRedlatchTellsBeforeAnybodyElseCanAcquire(t *testing.T) {
	t.Parallel()
	needsServer(t)
	p := plan(Clients()[0])
	redistest.UnlessTheMachineStalls(t, func() error {
		outcomes, err := p.Run(t.Context())
		if err != nil {
			return err
		}
		require.Len(t, outcomes, len(Ways()))
		for _, o := range outcomes {
			err = errors.Join(err, p.requireTold(t, o))
		}
		return err
	})
}

// requireTold checks an outcome, and returns what may be the machine's fault.
func (p Plan) requireTold(t *testing.T, o Outcome) (err error) {
	t.Helper()
	way := wayCalled(o.Way)
	require.Len(t, o.Before, p.Holds, o.Way)
	assert.Len(t, o.Gap, p.Holds, o.Way)
	assert.Zero(t, o.Never, o.Way)
	if way.Forgets != (o.Late() > 0) {
		err = fmt.Errorf("%s: %v", o.Way, o.Before)
	}
	if way.lives && !way.Forgets {
		assert.Len(t, o.Rival, p.Holds-o.GivenBack, o.Way)
	}
	for _, us := range o.Rival { // two accounts of one moment
		if us < 0 || us > 1_000_000 {
			err = errors.Join(err, fmt.Errorf("%s: the rival and the server do not agree: %v", o.Way, o.Rival))
		}
	}
	return err
}

func wayCalled(name string) Way {
	ways := Ways()
	return ways[slices.IndexFunc(ways, func(w Way) bool { return w.Name == name })]
}

func TestPeersAreMeasuredInTheSameWay(t *testing.T) {
	t.Parallel()
	needsServer(t)
	p := plan(Clients()[1:]...)
	p.Ways = p.Ways[2:5]
	var outcomes []Outcome
	redistest.UnlessTheMachineStalls(t, func() (err error) {
		outcomes, err = p.Run(t.Context())
		return err
	})
	require.Len(t, outcomes, 3*3, "one signal of rueidislock, and two of redsync")
	for _, o := range outcomes {
		assert.Len(t, o.Before, p.Holds, o.Client, o.Tells)
	}
}

// lateTeller tells only when the lease is over and another second has passed.
type lateTeller struct{ holder }

func (l lateTeller) take(ctx context.Context, name string) ([]signal, error) {
	signals, err := l.holder.take(ctx, name)
	if err != nil {
		return nil, err
	}
	var first atomic.Pointer[time.Time]
	return []signal{func() bool {
		if !signals[0]() {
			return false
		}
		now := time.Now()
		first.CompareAndSwap(nil, &now)
		return now.Sub(*first.Load()) > time.Second
	}}, nil
}

func TestHolderThatIsNotifiedTooLateIsCounted(t *testing.T) {
	t.Parallel()
	needsServer(t)
	late := Clients()[0]
	late.open = func(ctx context.Context, addr string, lease time.Duration) (holder, error) {
		h, err := openRedlatch(ctx, addr, lease)
		return lateTeller{h}, err
	}
	p := plan(late)
	p.Ways = p.Ways[:2]
	var outcomes []Outcome
	redistest.UnlessTheMachineStalls(t, func() (err error) {
		outcomes, err = p.Run(t.Context())
		return err
	})
	for _, o := range outcomes {
		assert.Equal(t, p.Holds, o.Late(), "%s: %v", o.Way, o.Before)
	}
}

func TestHoldThatEndsTooSoonFailsTheCell(t *testing.T) {
	t.Parallel()
	needsServer(t)
	hasty := Clients()[0]
	hasty.open = func(ctx context.Context, addr string, _ time.Duration) (holder, error) {
		h, err := openRedlatch(ctx, addr, lease)
		if err == nil {
			defer h.close()
		}
		return h, err
	}
	p := plan(hasty)
	p.Ways = p.Ways[:1]
	_, err := p.Run(t.Context())
	require.ErrorContains(t, err, "redlatch, frozen, 3s")
}
