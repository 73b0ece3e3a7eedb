package redisurl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

func TestAddressesOfDeploymentsAreTakenApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]redisurl.Deployment{
		"redis-cluster://a":              {Hosts: []string{"a:6379"}},
		"REDIS-CLUSTER://a:1,b/":         {Hosts: []string{"a:1", "b:6379"}},
		"rediss-cluster://[::1]:7,[::2]": {Secure: true, Hosts: []string{"[::1]:7", "[::2]:6379"}},
		"redis-cluster://u:p%40s,s@a,b/0?sharded_pubsub=off": {
			User: "u", Password: "p@s,s", Hosts: []string{"a:6379", "b:6379"}, Sharding: "off",
		},
		"redis-sentinel://a,b:7/m":    {Hosts: []string{"a:26379", "b:7"}, Master: "m"},
		"rediss-sentinel://:p@a/m/12": {Secure: true, Password: "p", Hosts: []string{"a:26379"}, Master: "m", DB: 12},
		"redis-sentinel://u@a/m%2Fn?sentinel_user=s&sentinel_password=q%40%26": {
			User: "u", Hosts: []string{"a:26379"}, Master: "m/n", SentinelUser: "s", SentinelPassword: "q@&",
		},
	} {
		require.True(t, redisurl.IsDeployment(text), text)
		d, err := redisurl.ParseDeployment(text)
		require.NoError(t, err, text)
		require.Equal(t, want, *d, text)
		again, err := redisurl.ParseDeployment(d.Full())
		require.NoError(t, err, text)
		require.Equal(t, want, *again, "%s became %s", text, d.Full())
		require.Equal(t, d.String(), redisurl.Show(text))
	}
	for _, text := range []string{"redis://a", "redis-cluster:a", "redis-clusters://a", "", "://"} {
		require.False(t, redisurl.IsDeployment(text), text)
	}
}

func TestShowSaysWhereADeploymentIsAndNotWho(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"redis-cluster://u:secret@a:1,b?sharded_pubsub=on":     "redis-cluster://a:1,b:6379",
		"rediss-sentinel://:secret@a/m/2":                      "rediss-sentinel://a:26379/m/2",
		"redis-sentinel://a/m?sentinel_password=secret":        "redis-sentinel://a:26379/m",
		"redis-sentinel://a/u:secret@m":                        "the given address",
		"redis-cluster://u:sec/ret@a,b":                        "the given address",
		"redis-cluster://u:secret,a:1":                         "the given address",
		"redis-cluster://a?password=secret":                    "the given address",
		"redis-sentinel://a/m?sentinel_user=secret":            "the given address",
		"redis-sentinel://a/m/secret":                          "the given address",
		"redis-cluster://a,u:secret:b:1":                       "the given address",
		"redis-sentinel://a/m?sentinel_password=sec@ret&x=y#z": "the given address",
	} {
		require.Equal(t, want, redisurl.Show(text), text)
	}
}
