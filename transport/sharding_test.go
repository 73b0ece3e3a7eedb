package transport_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/transport"
)

func TestPublishingIsDecidedAsRedissonDecides(t *testing.T) {
	t.Parallel()
	unknown := &transport.ServerError{Text: "ERR Unknown subcommand or wrong number of arguments for 'SHARDNUMSUB'."}
	denied := fmt.Errorf("asked: %w", &transport.ServerError{Text: "NOPERM this user has no permissions to run the 'pubsub|shardnumsub' command"})
	down := fmt.Errorf("%w: connection refused", transport.ErrNotSent)
	for _, c := range []struct {
		mode   transport.Sharding
		answer error
		want   string
	}{
		{transport.ShardingAuto, nil, "SPUBLISH"},
		{transport.ShardingAuto, unknown, "PUBLISH"},
		{transport.ShardingAuto, denied, "PUBLISH"},
		{transport.ShardingOn, denied, "SPUBLISH"},
		{transport.ShardingOff, nil, "PUBLISH"},
	} {
		asked := false
		got, err := c.mode.PublishCommand(func() error { asked = true; return c.answer })
		assert.NoError(t, err)
		assert.Equal(t, c.want, got, "%v, %v", c.mode, c.answer)
		assert.Equal(t, c.mode == transport.ShardingAuto, asked, "%v", c.mode)
	}
	unreachable := fmt.Errorf("%w: %w", transport.ErrNotSent, unknown) // a dial function's error
	for _, failure := range []error{down, unreachable} {
		got, err := transport.ShardingAuto.PublishCommand(func() error { return failure })
		assert.ErrorIs(t, err, transport.ErrNotSent, "a node that cannot be asked decides nothing, %q", got)
	}
}

func TestShardingIsCalledWhatRedissonCallsIt(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "AUTO", transport.ShardingAuto.String())
	assert.Equal(t, "ON", transport.ShardingOn.String())
	assert.Equal(t, "OFF", transport.ShardingOff.String())
	assert.Equal(t, "Sharding(7)", transport.Sharding(7).String())
}
