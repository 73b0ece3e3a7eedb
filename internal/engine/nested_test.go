package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

const outerOwner = "0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a12:7"

func TestNestedWaitAnnouncedUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		var last []any
		rule := l.tr.Answer
		l.tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			last = append([]any{c.Call.Key(0)}, c.Call.Args[1:]...)
			return rule(c)
		}
		wait := func(ctx context.Context, kind, key string) *Waiting {
			w := &Waiting{Name: "job", Kind: kind}
			require.NoError(t, l.BeginWait(w))
			l.Nest(ctx, w, key)
			return w
		}
		inside := context.WithValue(t.Context(), OuterKey{}, []string{outerOwner, "no owner"})
		l.Outer = []string{outerOwner}
		short := wait(t.Context(), "plain", "job")
		time.Sleep(nestedAfter - 1)
		l.EndWait(short)
		l.Outer = nil
		for _, w := range []*Waiting{wait(t.Context(), "plain", "job"), wait(inside, "permits", "job"), wait(inside, "plain", "another")} {
			defer l.EndWait(w)
		}
		w := wait(inside, "plain", "job")
		time.Sleep(nestedAfter + nestedEvery)
		require.Equal(t, []string{"9.999999999s SET", "12.999999999s SET"}, l.took())
		require.Equal(t, []any{NestedKey(outerOwner), l.ClientID.String() + " 2 2 plain job", "PX", int64(10_000)}, last)
		l.EndWait(w)
		require.Equal(t, []string{"12.999999999s DEL"}, l.took())
		l.fails.Store(&transport.ServerError{Text: "NOPERM this user has no permissions to access one of the keys"})
		w = wait(inside, "plain", "job")
		time.Sleep(time.Hour)
		require.Equal(t, []string{"17.999999999s SET"}, l.took(), "each attempt would be logged by the server")
		l.EndWait(w)
		require.Empty(t, l.took())
		require.NoError(t, l.Close())
		require.Empty(t, l.log.String())
	})
}
