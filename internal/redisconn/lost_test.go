package redisconn_test

import (
	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisconn"
)

// Without the method nothing fails: losses would be heard of later.
var (
	_ engine.LossTeller = (*redisconn.Redigo)(nil)
	_ engine.LossTeller = (*cluster.Cluster)(nil)
)
