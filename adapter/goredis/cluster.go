package goredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/transport"
)

func newCluster(_ context.Context, _ *redis.ClusterClient, _ *settings) (transport.Transport, error) {
	return nil, errors.New("goredis: later")
}
