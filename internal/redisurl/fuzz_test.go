package redisurl_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

// FuzzAddress requires that errors for any address are short and hide the user and password.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{
		"redis://user:sesame@localhost:6379/1", "rediss://:sesame@[::1]:6379", "unix://u:sesame@/run/redis.sock?db=2", "redis:sesame",
		"redis://sesame@host", "redis://:ses%zz@host", "redis://:sesame@host/x", "unix://:sesame@/s?db=-1", "", "\x00", "redis://h:99999999999/9223372036854775808",
		"redis://u:p@\xff", "redis://[fe80::1%25en0]:6379", "REDIS://host", "redis://host/1/2", "unix:///" + strings.Repeat("a", 300),
		"redis-cluster://user:sesame@a:1,b,[::1]:2/0?sharded_pubsub=off", "rediss-sentinel://:sesame@a,b/m/2?sentinel_user=u&sentinel_password=sesame",
		"redis-cluster://user:sesame,a", "redis-sentinel://a/sesame@m", "redis-sentinel://", "redis-sentinel://a/%zz?%",
		"redis://:sesame@h\n", "redis://:sesame@h\r\n", "\"redis://:sesame@h\"", "redis://:ses/ame@h", "redis://:ses#ame@h", "redis://:ses?ame@h",
		"sesame:6379", "redis+sentinel://:sesame@h/m", "h:6380,password=sesame,ssl=True", "redis://h:6380,password=sesame", "valkeys-sentinel://:sesame@a,b/m",
		"sesame://h", "redis://sesame", "redis://h:sesame", "redis://h/sesame", "redis://h?password=sesame", "redis://h#sesame", "unix:///:sesame@r",
		"redis://[::%25é]", "redis://[::%25\xa5]",
	} {
		f.Add(text, "sesame")
	}
	for _, pair := range [][2]string{
		{"uniX:", "0"}, {":", "0"}, {"0", "AAAAAAAA"}, {"A00A", "0"}, {"//[", "0"}, {"//0000@0000", "0"},
		{"redis://aa@\xff", "00\x80000"}, {"?", "00\xe9\x96\xf90"}, {"0", "0\xd00000"}, {"0", "0000 0"}, {"0", "00++++"}, {"0", "Ę\xd4\xd400"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, text, secret string) {
		a, err := parse(text)
		require.Equal(t, err == nil, a != nil)
		requireWhole(t, text)
		shown := redisurl.Show(text)
		if err != nil {
			shown += " " + err.Error()
		}
		require.Less(t, len(shown), 2048)
		if len(secret) < 6 || !utf8.ValidString(secret) || strings.ContainsAny(secret, ":/?#[]@%\\ ") {
			return // it is not a password, or it is escaped
		}
		for _, hidden := range []string{
			"redis://user:" + secret + "@127.0.0.1:1/x", "redis://:" + secret + "/@h", "redis://h?x=" + secret, "redis://h:x" + secret + "/",
			"redis://h/" + secret + "x", "h:1,password=" + secret, "'redis://:" + secret + "@h", "redis://:" + secret + "@h\n", secret + "x://h",
		} {
			_, err := parse(hidden)
			require.Error(t, err)
			if !strings.Contains(shownWithout(hidden, secret), secret) {
				require.NotContains(t, redisurl.Show(hidden)+err.Error(), secret)
			}
		}
	})
}

// parse returns the errors that Open reports before it connects.
func parse(text string) (*redisurl.Address, error) {
	a, err := redisurl.Parse(text)
	if err != nil {
		return nil, err
	}
	if _, _, err := a.Credentials(); err != nil {
		return nil, fmt.Errorf("address %s: %w", a, err)
	}
	return a, nil
}

// shownWithout returns the output for an address in which secret is replaced with another text.
func shownWithout(address, secret string) string {
	other := strings.Replace(address, secret, "another", 1)
	_, err := parse(other)
	return redisurl.Show(other) + fmt.Sprint(err)
}

// requireWhole checks that Full and Parse preserve a valid address.
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
