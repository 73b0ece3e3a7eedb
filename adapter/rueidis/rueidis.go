package rueidis

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
)

// New returns a Redlatch client of the server or the cluster of client, with the options of package
// redlatch. It takes dedicated connections from client and returns them when it is closed. It never
// closes client, which must stay open until then.
//
// New rejects a client of Sentinels: it follows the master seconds late and does not expose the Sentinels.
// Use [NewSentinel] with the options of such a client.
//
// To a cluster New sends PUBSUB SHARDNUMSUB, unless redlatch.WithShardedPubSub is set, and fails if no
// node answers before ctx ends. Otherwise it does no I/O. If one server has replicas on which Redisson may
// listen, set redlatch.WithReplicaDialer with a [Dialer]. New panics if ctx is nil.
func New(ctx context.Context, client rueidis.Client, opts ...redlatch.Option) (*redlatch.Client, error) {
	if ctx == nil {
		panic("rueidis: nil Context")
	}
	if client == nil {
		return nil, errors.New("rueidis: New needs a client")
	}
	switch mode := client.Mode(); mode {
	case rueidis.ClientModeStandalone:
		return redlatch.New(func(ctx context.Context) (redis.Conn, error) { return take(ctx, client) }, opts...)
	case rueidis.ClientModeCluster:
		return newCluster(ctx, client, opts)
	case rueidis.ClientModeSentinel:
		return nil, errSentinel
	default:
		return nil, fmt.Errorf("rueidis: a client of mode %q cannot be used", mode)
	}
}

var errSentinel = errors.New("rueidis: a client of Sentinels cannot be used: give the options that it was made with to NewSentinel")

// NewSentinel returns a Redlatch client of the master that Sentinels name. option is as for a rueidis client
// of Sentinels: InitAddress lists the Sentinels, Sentinel.MasterSet is their name for the master, and the
// rest is for connections to the servers and, in Sentinel, to the Sentinels; see [Dialer] for the fields in
// use. There is no rueidis client: Redlatch queries all Sentinels directly and concurrently, and follows
// the first one that reports a failover. opts are the options of package redlatch. NewSentinel does no I/O;
// redlatch.NewSentinel and redlatch.AskSentinels list the commands that are sent.
func NewSentinel(option rueidis.ClientOption, opts ...redlatch.Option) (*redlatch.Client, error) {
	if option.Sentinel.MasterSet == "" || len(option.InitAddress) == 0 {
		return nil, errors.New("rueidis: NewSentinel needs the addresses of Sentinels and the name of their master")
	}
	ask := redlatch.AskSentinels(option.Sentinel.MasterSet, option.InitAddress, Dialer(sentinelOption(option)))
	return redlatch.NewSentinel(ask, Dialer(option), opts...)
}

// sentinelOption returns the options for connections to Sentinels.
func sentinelOption(opt rueidis.ClientOption) rueidis.ClientOption {
	s := opt.Sentinel
	opt.Username, opt.Password, opt.AuthCredentialsFn = s.Username, s.Password, nil
	opt.TLSConfig, opt.Dialer, opt.ClientName = s.TLSConfig, s.Dialer, s.ClientName
	opt.SelectDB, opt.ClientNoTouch, opt.ClientNoEvict = 0, false, false
	return opt
}
