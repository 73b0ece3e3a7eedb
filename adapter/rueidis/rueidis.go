package rueidis

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
)

// New returns a Redlatch client of the server or the cluster that client leads to. The
// options are those of package redlatch. It takes connections of its own from client and
// gives them back when it is closed. It never closes client, which must stay open until
// then.
//
// A client of Sentinels is refused: it turns to another master seconds after it was named,
// and does not tell where the Sentinels are. [NewSentinel] takes the options that such a
// client is made with.
//
// To a cluster New sends PUBSUB SHARDNUMSUB, unless redlatch.WithShardedPubSub decides, and
// returns an error when no node answers before ctx ends. Otherwise it does no I/O. Where
// one server has replicas on which Redisson may listen, redlatch.WithReplicaDialer with a
// [Dialer] says how to reach them. New panics when ctx is nil.
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

// NewSentinel returns a Redlatch client of the master that Sentinels name. option is what a
// rueidis client of them is made with: InitAddress is where the Sentinels are,
// Sentinel.MasterSet what they call the master, and the rest how to connect to the servers
// and, in Sentinel, to the Sentinels; see [Dialer] for what of it counts. No rueidis client
// is made: the Sentinels are asked directly, all at once, so a switch of masters is acted
// on as soon as one of them tells of it. The other options are those of package redlatch.
// NewSentinel does no I/O; see redlatch.NewSentinel and redlatch.AskSentinels for what is
// sent.
func NewSentinel(option rueidis.ClientOption, opts ...redlatch.Option) (*redlatch.Client, error) {
	if option.Sentinel.MasterSet == "" || len(option.InitAddress) == 0 {
		return nil, errors.New("rueidis: NewSentinel needs the addresses of Sentinels and the name of their master")
	}
	ask := redlatch.AskSentinels(option.Sentinel.MasterSet, option.InitAddress, Dialer(sentinelOption(option)))
	return redlatch.NewSentinel(ask, Dialer(option), opts...)
}

// sentinelOption returns the options of connections to Sentinels.
func sentinelOption(opt rueidis.ClientOption) rueidis.ClientOption {
	s := opt.Sentinel
	opt.Username, opt.Password, opt.AuthCredentialsFn = s.Username, s.Password, nil
	opt.TLSConfig, opt.Dialer, opt.ClientName = s.TLSConfig, s.Dialer, s.ClientName
	opt.SelectDB, opt.ClientNoTouch, opt.ClientNoEvict = 0, false, false
	return opt
}
