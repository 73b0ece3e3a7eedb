package redlatch

import (
	"fmt"
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
	for _, text := range []string{
		"redis://:sesame@h\n", "redis://:sesame@h\r\n", "\"redis://:sesame@h\"", "redis://:ses/ame@h", "redis://:ses#ame@h", "redis://:ses?ame@h",
		"sesame:6379", "redis+sentinel://:sesame@h/m", "h:6380,password=sesame,ssl=True", "redis://h:6380,password=sesame", "valkeys-sentinel://:sesame@a,b/m",
		"sesame://h", "redis://sesame", "redis://h:sesame", "redis://h/sesame", "redis://h?password=sesame", "redis://h#sesame", "unix:///:sesame@r",
	} {
		f.Add(text, "sesame")
	}
	f.Add("uniX:", "0")
	f.Add(":", "0")
	f.Add("0", "AAAAAAAA")
	f.Add("A00A", "0")
	f.Add("//[", "0")
	f.Add("0", "0\xd00000")
	f.Add("0", "0000 0")
	f.Add("//0000@0000", "0")
	f.Add("redis://aa@\xff", "00\x80000")
	f.Add("0", "00++++")
	f.Add("?", "00\xe9\x96\xf90")
	f.Add("0", "Ę\xd4\xd400")
	f.Fuzz(func(t *testing.T, text, secret string) {
		set, err := configure(nil)
		require.NoError(t, err)
		a, err := set.parse(text)
		require.Equal(t, err == nil, a != nil)
		requireWhole(t, text)
		shown := redisurl.Show(text)
		if err != nil {
			shown += " " + err.Error()
		}
		require.Less(t, len(shown), 2048)
		if len(secret) < 6 || !utf8.ValidString(secret) || strings.ContainsAny(secret, ":/?#[]@%\\ ") {
			return // it would not be one, or be written in another way
		}
		for _, hidden := range []string{
			"redis://user:" + secret + "@127.0.0.1:1/x", "redis://:" + secret + "/@h", "redis://h?x=" + secret, "redis://h:x" + secret + "/",
			"redis://h/" + secret + "x", "h:1,password=" + secret, "'redis://:" + secret + "@h", "redis://:" + secret + "@h\n", secret + "x://h",
		} {
			_, err := set.parse(hidden)
			require.Error(t, err)
			if !strings.Contains(shownWithout(hidden, secret), secret) {
				require.NotContains(t, redisurl.Show(hidden)+err.Error(), secret)
			}
		}
	})
}

// shownWithout returns what is shown of an address with another text in place of secret.
func shownWithout(address, secret string) string {
	other := strings.Replace(address, secret, "another", 1)
	_, err := redisurl.Parse(other)
	return redisurl.Show(other) + fmt.Sprint("redlatch: ", err)
}

// requireWhole checks that an address is the same when it is put together again, or is refused.
func requireWhole(t *testing.T, text string) {
	t.Helper()
	d, err := redisurl.Parse(text)
	if err != nil {
		require.Less(t, len(err.Error()), 200)
		return
	}
	again, err := redisurl.Parse(d.Full())
	require.NoError(t, err, "%q", text)
	require.Equal(t, d, again)
	if d.Password != "" && !strings.Contains(text, "@"+d.Password) {
		require.NotContains(t, d.String(), ":"+d.Password+"@")
	}
}
