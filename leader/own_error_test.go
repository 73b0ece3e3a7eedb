package leader_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
)

// The error is about something else that Lead uses.
func TestErrorOfLeadDoesNotEndRunAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.New(srv.Server.Dial)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		c := run(t, client, "job", leader.Config{Lead: func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("the work: %w", redlatch.ErrInvalid)
		}})
		<-c.leads
		srv.Do(t, "DEL", "job")
		require.ErrorIs(t, receive(t, c.errors), redlatch.ErrLost)
		<-c.leads
		c.stop()
		require.ErrorIs(t, <-c.ended, redlatch.ErrInvalid)
	})
}
