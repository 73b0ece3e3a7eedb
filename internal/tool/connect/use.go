package connect

import (
	"context"

	"github.com/gomodule/redigo/redis"
)

// Dialer makes a connection, as [Server.Dial] does.
type Dialer func(context.Context) (redis.Conn, error)

// Use calls do with a connection that it closes after that. It ends with ctx: commands on a connection
// know nothing of it, so the connection is closed. The error is dial's, the cause of ctx, or do's.
func Use(ctx context.Context, dial Dialer, do func(redis.Conn) error) error {
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // only read from
	}()
	if err = do(c); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
