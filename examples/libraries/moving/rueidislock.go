package moving

import (
	"context"

	"github.com/redis/rueidis/rueidislock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// UnderRueidislock runs ship under a rueidislock lock, which is renewed.
func UnderRueidislock(ctx context.Context, locker rueidislock.Locker, name string, ship Work) error {
	ctx, cancel, err := locker.WithContext(ctx, name)
	if err != nil {
		return err
	}
	defer cancel() // unlocks
	return ship(ctx)
}

// InsteadOfRueidislock does the same under a Redlatch lock. If the lock is lost, ship's context ends with
// the cause redlatch.ErrLost, which InsteadOfRueidislock returns.
func InsteadOfRueidislock(ctx context.Context, client *redlatch.Client, name string, ship Work) error {
	return rlock.New(client, name).Do(ctx, ship)
}
