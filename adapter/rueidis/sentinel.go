package rueidis

import (
	"errors"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
)

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
