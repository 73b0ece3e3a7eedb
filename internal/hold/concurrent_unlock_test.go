package hold_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rlock"
)

// A stopping context calls stop when a context derived from it is canceled.
type stopping struct {
	context.Context
	done chan struct{}
	stop func() bool
}

func (s stopping) Done() <-chan struct{}        { return s.done }
func (s stopping) AfterFunc(func()) func() bool { return s.stop }

func TestUnlockDuringLetExpireAndHandOverReturnsNil(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rlock.Hold) error{
		"LetExpire": (*rlock.Hold).LetExpire,
		"HandOver":  func(h *rlock.Hold) error { _, err := h.HandOver(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
				switch c.Name {
				case "acquire":
					return nil, nil, true
				case "renew":
					return []any{int64(1)}, nil, true
				}
				return int64(1), nil, true
			}}
			h, err := rlock.New(clientOver(t, tr), "job").Lock(t.Context())
			require.NoError(t, err)
			unlocked := make(chan error, 1)
			_ = h.Context(stopping{context.Background(), make(chan struct{}), func() bool {
				go func() { unlocked <- h.Unlock() }()
				for range 1000 { // lets Unlock return if it does not wait
					runtime.Gosched()
				}
				return true
			}})
			require.NoError(t, end(h))
			require.NoError(t, <-unlocked)
			require.NotEqual(t, "release", tr.Last(t).Name)
		})
	}
}

// An Unlock that begins while HandOver waits for its renewal frees the lock.
func TestUnlockDuringRenewalOfHandOverReleases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		renewals := make(chan *faketransport.SentCall, 1)
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "renew":
				renewals <- c
				return nil, nil, false
			}
			return int64(1), nil, true
		}}
		h, err := rlock.New(clientOver(t, tr), "job").Lock(t.Context())
		require.NoError(t, err)
		handedOver := make(chan error, 1)
		go func() {
			_, err := h.HandOver()
			handedOver <- err
		}()
		renewal := <-renewals
		unlocked := make(chan error, 1)
		go func() { unlocked <- h.Unlock() }()
		synctest.Wait()
		renewal.Ends([]any{int64(1)}, nil)
		require.ErrorIs(t, <-handedOver, redlatch.ErrNotHeld)
		require.NoError(t, <-unlocked)
		require.Equal(t, "release", tr.Last(t).Name)
	})
}
