package redisurl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	const cluster, sentinels = redisurl.Cluster, redisurl.Sentinels
	for text, want := range map[string]redisurl.Address{
		"redis://a":                      {Hosts: []string{"a:6379"}},
		"REDISS://u:p@a:1/7":             {Secure: true, User: "u", Password: "p", Hosts: []string{"a:1"}, DB: 7},
		"valkey://p@[::1]/":              {Valkey: true, User: "p", UserOnly: true, Hosts: []string{"[::1]:6379"}},
		"valkeys://u:@a:?#":              {Valkey: true, Secure: true, User: "u", Hosts: []string{"a:6379"}},
		"redis://[fe80::1%25en0]:6379":   {Hosts: []string{"[fe80::1%en0]:6379"}},
		"redis://:p@ss,word%25:!~@h":     {Password: "p@ss,word%:!~", Hosts: []string{"h:6379"}},
		"unix:///run/r%25%20s":           {Kind: redisurl.Socket, Path: "/run/r% s"},
		"unix:/run/@r?db=0":              {Kind: redisurl.Socket, Path: "/run/@r"},
		"unix://u:p@/run/r?db=3":         {Kind: redisurl.Socket, User: "u", Password: "p", Path: "/run/r", DB: 3},
		"redis-cluster://a":              {Kind: cluster, Hosts: []string{"a:6379"}},
		"valkeys-cluster://a":            {Kind: cluster, Valkey: true, Secure: true, Hosts: []string{"a:6379"}},
		"REDIS-CLUSTER://a:1,b/":         {Kind: cluster, Hosts: []string{"a:1", "b:6379"}},
		"rediss-cluster://[::1]:7,[::2]": {Kind: cluster, Secure: true, Hosts: []string{"[::1]:7", "[::2]:6379"}},
		"redis-cluster://u:p%40s,s@a,b/0?sharded_pubsub=off": {
			Kind: cluster, User: "u", Password: "p@s,s", Hosts: []string{"a:6379", "b:6379"}, Sharding: "off",
		},
		"redis-sentinel://a,b:7/m":    {Kind: sentinels, Hosts: []string{"a:26379", "b:7"}, Master: "m"},
		"rediss-sentinel://:p@a/m/12": {Kind: sentinels, Secure: true, Password: "p", Hosts: []string{"a:26379"}, Master: "m", DB: 12},
		"redis-sentinel://u@a/m%2Fn?sentinel_user=s&sentinel_password=q%40%26": {
			Kind: sentinels, User: "u", UserOnly: true, Hosts: []string{"a:26379"}, Master: "m/n", SentinelUser: "s", SentinelPassword: "q@&",
		},
	} {
		a, err := redisurl.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, *a, text)
		again, err := redisurl.Parse(a.Full())
		require.NoError(t, err, text)
		require.Equal(t, want, *again, "%s became %s", text, a.Full())
		require.Equal(t, a.String(), redisurl.Show(text))
	}
}

func TestParseErrorNamesInvalidPart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "it is empty",
		" \n":                                    "it is empty",
		"redis://h\n":                            "remove the white space around it",
		"redis://h\r\n":                          "remove the white space around it",
		"redis://h ":                             "remove the white space around it",
		"\tredis://h":                            "remove the white space around it",
		"redis://:se\nsame@h":                    "it has a control character",
		"\"redis://:sesame@h\"":                  "remove the quotes around it",
		"'redis://:sesame@h'":                    "remove the quotes around it",
		"localhost:6379":                         "the scheme is missing: write redis://host:port",
		"127.0.0.1:6379":                         "the scheme is missing",
		"redis:6379":                             "the scheme is missing",
		"redis":                                  "the scheme is missing",
		"user:sesame@host:6379":                  "the scheme is missing",
		"/run/redis.sock":                        "the scheme is missing",
		"unix:run/redis.sock":                    "the scheme is missing",
		"sesame://h":                             "the scheme must be redis, rediss (TLS) or unix",
		"redis-clusters://h":                     "the scheme must be",
		"redis+sentinel://:sesame@h/m/0":         "the scheme must be",
		"https://sesame@x.upstash.io":            "the scheme must be",
		"h.net:6380,password=sesame,ssl":         "the scheme is missing",
		"redis://h:6380,password=sesame":         "several hosts",
		"redis://a,b":                            "several hosts: write redis-cluster://host,host",
		"redis://:se/sa+me=@h":                   "write / as %2F, ? as %3F and # as %23",
		"redis:///user:sesame@h":                 "write / as %2F, ? as %3F and # as %23",
		"unix:////:sesame@redis":                 "write / as %2F, ? as %3F and # as %23",
		"unix://:sesame@x/run/redis":             "a Unix socket has three slashes",
		"redis:/user:sesame@h":                   "the scheme is missing",
		"redis://:se#same@h":                     "write / as %2F, ? as %3F and # as %23",
		"redis-cluster://:se?same@h":             "write / as %2F, ? as %3F and # as %23",
		"unix://:se/same@/run/r":                 "write / as %2F, ? as %3F and # as %23",
		"redis://:ses%ame@h":                     "that is not an escape: write it as %25",
		"redis://:ses^ame@h":                     "percent-encode special characters in the user and the password",
		"redis://":                               "the host is missing",
		"redis://:6379/1":                        "the host is missing",
		"redis-cluster://a,,b":                   "the host is missing",
		"redis://{sesame}":                       "the host has an invalid character",
		"redis://[fe80::1%25a%2Cb]":              "the host has an invalid character",
		"redis-cluster://a,u:sesame:b:1":         "put [ ] around an IPv6 address",
		"redis://::1":                            "put [ ] around an IPv6 address",
		"redis://user:sesame:h:1":                "and @ after the password",
		"redis://user:sesame":                    "the port must be a number from 1 to 65535",
		"redis-cluster://a:0":                    "the port must be",
		"redis://h:65536":                        "the port must be",
		"redis://h:+1":                           "the port must be",
		"redis://h?password=sesame":              "a single server does not support options",
		"redis://h/sesame":                       "the database must be a number from 0",
		"redis://h/2147483648":                   "the database must be",
		"redis://h/-1":                           "the database must be",
		"redis-sentinel://a/m/x":                 "the database must be",
		"unix:///s?db=x":                         "the database must be",
		"redis://h#sesame":                       "remove the # and the text after it",
		"unix://run/redis.sock":                  "a Unix socket has three slashes",
		"unix://":                                "the path is missing",
		"unix:///a%zz":                           "the path has a % that is not an escape",
		"unix:///s?timeout=1":                    "a Unix socket supports only the option db",
		"unix:///s?%zz":                          "percent-encode special characters in the options",
		"redis-cluster://a?sharded_pubsub=maybe": "must be auto, on or off",
		"redis-cluster://a?%zz":                  "percent-encode special characters in the options",
		"redis-sentinel://a,b/":                  "missing master name",
		"redis-sentinel://a/m/1/2":               "/master or /master/database",
		"redis-sentinel://a/m%20m":               "/master or /master/database",
		"redis-sentinel://a/m?sentinel_user=x":   "needs sentinel_password",
		"rediss-cluster:a":                       "the scheme is missing",
		"rediss://h/1/2":                         "the database must be",
		"rediss://h?insecure_skip_verify":        "a single server does not support options",
		"unix:///s?db=-2":                        "the database must be",
		"unix:///s?db=1&db=2":                    "a Unix socket supports only the option db",
		"redis-cluster://a/1":                    "only database 0",
		"redis-sentinel://a":                     "missing master name",
		"redis-sentinel://a/m%40sesame":          "the path of an address of Sentinels",
		"redis-sentinel://a/m?password=sesame":   "other than sentinel_user or sentinel_password",
		"redis-cluster://a?password=sesame":      "an option other than sharded_pubsub",
		"redis://" + strings.Repeat("h", 5000):   "5008 bytes: must be at most 4096",
	} {
		a, err := redisurl.Parse(text)
		require.ErrorContains(t, err, "invalid address: ", "%q", text)
		require.ErrorContains(t, err, want, "%q", text)
		require.Nil(t, a)
		require.NotContains(t, err.Error(), "same")
		require.Less(t, len(err.Error()), 200)
		require.Equal(t, "the given address", redisurl.Show(text))
	}
}

func TestShowOmitsCredentials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"redis://localhost:6379/1":                         "redis://localhost:6379/1",
		"redis://user:secret@localhost":                    "redis://localhost:6379",
		"redis://:secret@localhost/2":                      "redis://localhost:6379/2",
		"redis://secret@localhost":                         "redis://localhost:6379",
		"unix://:secret@/run/redis?db=1":                   "unix:///run/redis",
		"redis://[::1]:6379/1":                             "redis://[::1]:6379/1",
		"valkeys://:secret@h":                              "valkeys://h:6379",
		"unix:///run/@redis":                               "unix:///run/@redis",
		"redis-cluster://u:secret@a:1,b?sharded_pubsub=on": "redis-cluster://a:1,b:6379",
		"rediss-sentinel://:secret@a/m/2":                  "rediss-sentinel://a:26379/m/2",
		"redis-sentinel://a/m?sentinel_password=secret":    "redis-sentinel://a:26379/m",
	} {
		require.Equal(t, want, redisurl.Show(text), text)
	}
}

func TestServerUsesAddressCredentials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]redisurl.Server{
		"redis://host":                   {Network: "tcp", Addr: "host:6379"},
		"rediss://host:7000/":            {Network: "tcp", Addr: "host:7000"},
		"redis://[::1]/3":                {Network: "tcp", Addr: "[::1]:6379", DB: 3},
		"redis://[::1]:1/3/":             {Network: "tcp", Addr: "[::1]:1", DB: 3},
		"redis://user:p%40ss@host":       {Network: "tcp", Addr: "host:6379", User: "user", Password: "p@ss"},
		"redis://:pass@host":             {Network: "tcp", Addr: "host:6379", Password: "pass"},
		"redis://pass@host":              {Network: "tcp", Addr: "host:6379", Password: "pass"},
		"unix:///run/redis.sock":         {Network: "unix", Addr: "/run/redis.sock"},
		"unix://user:pass@/r.sock?db=12": {Network: "unix", Addr: "/r.sock", User: "user", Password: "pass", DB: 12},
	} {
		a, err := redisurl.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.Server(), text)
	}
}
