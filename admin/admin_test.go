package admin_test

import (
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestInvalidNamesRejectedWithoutRequest(t *testing.T) {
	t.Parallel()
	client, err := redlatch.New(func(context.Context) (redis.Conn, error) { panic("dialled") })
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	for what, do := range map[string]func(ctx context.Context, of admin.Lock) error{
		"inspect":      func(ctx context.Context, of admin.Lock) error { _, err := admin.Inspect(ctx, of); return err },
		"inspect part": func(ctx context.Context, of admin.Lock) error { _, err := admin.InspectPart(ctx, of, 1, 2); return err },
		"evict":        func(ctx context.Context, of admin.Lock) error { _, err := admin.Evict(ctx, of, "a:1"); return err },
		"force evict":  func(ctx context.Context, of admin.Lock) error { _, err := admin.ForceEvict(ctx, of, "a:1"); return err },
	} {
		for _, lock := range []admin.Lock{rlock.New(client, ""), rfairlock.New(client, "")} {
			err := do(t.Context(), lock)
			require.ErrorIs(t, err, redlatch.ErrInvalid, what)
			var about *redlatch.LockError
			require.ErrorAs(t, err, &about, what)
		}
	}
}

func TestInspectRejectsExpirableSemaphore(t *testing.T) {
	t.Parallel()
	client, err := redlatch.New(func(context.Context) (redis.Conn, error) { panic("dialled") })
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	_, err = admin.Inspect(t.Context(), rsemaphore.NewExpirable(client, "seats"))
	require.ErrorIs(t, err, redlatch.ErrInvalid)
}
