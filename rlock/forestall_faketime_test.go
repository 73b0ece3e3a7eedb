package rlock_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// outOfReach is a transport that sends nothing while it is away, and takes its time
// otherwise.
type outOfReach struct {
	transport.Transport
	away atomic.Bool
}

func (o *outOfReach) Start(call *transport.Call, done transport.Done) {
	if o.away.Load() {
		done(nil, redlatch.ErrNotSent)
		return
	}
	time.AfterFunc(5*time.Millisecond, func() { o.Transport.Start(call, done) })
}

// What settles an inner unlock arrives at the count that there is, without the holds
// that were given up meanwhile. Those find their work done, which is no loss.
func TestUnlockThatTheResolverOfAnInnerOneForestalledIsNoLoss(t *testing.T) {
	for name, enter := range map[string]func(t *testing.T, l *rlock.Lock) *rlock.Hold{
		"freed": func(t *testing.T, l *rlock.Lock) *rlock.Hold {
			t.Helper()
			return take(t, l)
		},
		"left to the lease of a hold at its maximum": func(t *testing.T, l *rlock.Lock) *rlock.Hold {
			t.Helper()
			outer := take(t, l, rlock.WithMaxHold(2*time.Second))
			hold := again(t, l, outer)
			time.Sleep(time.Minute)
			require.ErrorIs(t, outer.Err(), redlatch.ErrMaxHold)
			return hold
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := inBubble(t)
				tr := &outOfReach{Transport: redigoTransport(srv)}
				client, err := redlatch.NewWithTransport(tr)
				require.NoError(t, err)
				defer func() { require.NoError(t, client.Close()) }()
				l := rlock.New(client, "job")
				for range 20 { // which of the two comes first depends on their pauses
					hold := enter(t, l)
					inner := again(t, l, hold)
					tr.away.Store(true)
					require.NoError(t, inner.Unlock(), "it is settled in the background")
					back := time.AfterFunc(800*time.Millisecond, func() { tr.away.Store(false) })
					require.NoError(t, hold.Unlock())
					require.False(t, back.Stop())
					time.Sleep(time.Minute)
				}
			})
		})
	}
}
