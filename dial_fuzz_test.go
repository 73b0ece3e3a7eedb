package redlatch

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

// FuzzAddress gives Open addresses of any kind: whatever is wrong with one, the error
// is short and tells neither user nor password.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{
		"redis://user:sesame@localhost:6379/1", "rediss://:sesame@[::1]:6379", "unix://u:sesame@/run/redis.sock?db=2", "redis:sesame",
		"redis://sesame@host", "redis://:ses%zz@host", "redis://:sesame@host/x", "unix://:sesame@/s?db=-1", "", "\x00", "redis://h:99999999999/9223372036854775808",
		"redis://u:p@\xff", "redis://[fe80::1%25en0]:6379", "REDIS://host", "redis://host/1/2", "unix:///" + strings.Repeat("a", 300),
		"redis-cluster://user:sesame@a:1,b,[::1]:2/0?sharded_pubsub=off", "rediss-sentinel://:sesame@a,b/m/2?sentinel_user=u&sentinel_password=sesame",
		"redis-cluster://user:sesame,a", "redis-sentinel://a/sesame@m", "redis-sentinel://", "redis-sentinel://a/%zz?%",
	} {
		f.Add(text, "sesame")
	}
	f.Fuzz(func(t *testing.T, text, secret string) {
		set, err := configure(nil)
		require.NoError(t, err)
		dial, err := set.dialer(text)
		require.Equal(t, err == nil, dial != nil)
		if redisurl.IsDeployment(text) {
			requireWhole(t, text)
		}
		shown := redisurl.Show(text)
		if err != nil {
			shown += " " + err.Error()
		}
		require.Less(t, len(shown), 2048)
		if len(secret) < 6 || !utf8.ValidString(secret) || strings.ContainsAny(secret, ":/?#[]@%\\ ") {
			return // it would not be one, or be written in another way
		}
		hidden := "redis://user:" + secret + "@127.0.0.1:1/" + "x"
		_, err = set.dialer(hidden)
		require.Error(t, err)
		if !strings.Contains("redlatch: redis://127.0.0.1:1/x: \"x\" is no database number", secret) {
			require.NotContains(t, redisurl.Show(hidden)+err.Error(), secret)
		}
	})
}

// requireWhole holds that the address of a deployment is the same when it is put together
// again, or is refused.
func requireWhole(t *testing.T, text string) {
	t.Helper()
	d, err := redisurl.ParseDeployment(text)
	if err != nil {
		require.Less(t, len(err.Error()), 200)
		return
	}
	again, err := redisurl.ParseDeployment(d.Full())
	require.NoError(t, err, "%q", text)
	require.Equal(t, d, again)
	if d.Password != "" && !strings.Contains(text, "@"+d.Password) {
		require.NotContains(t, d.String(), ":"+d.Password+"@")
	}
}
