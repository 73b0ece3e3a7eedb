package transport

import (
	"errors"
	"fmt"
)

// Sharding says how messages are published in a cluster: with SPUBLISH, to the nodes
// of one shard, or with PUBLISH, to all nodes. A message that is published one way
// does not wake subscribers of the other way only, so it has to be the same in the
// whole fleet: Redisson calls it shardedSubscriptionMode. Outside of a cluster it
// has no effect.
type Sharding uint8

const (
	// ShardingAuto uses SPUBLISH where the server can count listeners of shards:
	// Redis 7 and later, Valkey. It is Redisson's default.
	ShardingAuto Sharding = iota
	// ShardingOn uses SPUBLISH without asking.
	ShardingOn
	// ShardingOff uses PUBLISH.
	ShardingOff
)

// PublishCommand decides for a cluster, as Redisson does when it starts. With
// ShardingAuto it calls ask, which sends PUBSUB SHARDNUMSUB 0 to any one node: any
// error that the server sent decides for PUBLISH, whether it does not know the
// command or does not permit it. Any other error decides nothing and is returned.
func (s Sharding) PublishCommand(ask func() error) (string, error) {
	switch s {
	case ShardingOn:
		return "SPUBLISH", nil
	case ShardingOff:
		return "PUBLISH", nil
	}
	err := ask()
	var refusal *ServerError
	switch {
	case err == nil:
		return "SPUBLISH", nil
	case errors.As(err, &refusal):
		return "PUBLISH", nil
	}
	return "", fmt.Errorf("redlatch: cannot find out whether to publish with PUBLISH or SPUBLISH: %w", err)
}

// String returns Redisson's word for it: AUTO, ON or OFF.
func (s Sharding) String() string {
	switch s {
	case ShardingAuto:
		return "AUTO"
	case ShardingOn:
		return "ON"
	case ShardingOff:
		return "OFF"
	}
	return fmt.Sprintf("Sharding(%d)", uint8(s))
}
