package redistest

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestExpiriesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	s := Start(t, WithAppendOnly())
	for _, cmd := range [][]any{
		{"SET", "set", "v", "PX", 5000},
		{"SET", "not there", "PXAT of nobody", "NX", "EX", 7},
		{"EVAL", "redis.call('hincrby', KEYS[1], 'o', 1) return redis.call('pexpire', KEYS[1], 3000)", 1, "script"},
		{"EVAL", "return redis.call('pexpire', KEYS[1], 9000)", 1, "script"},
		{"SET", "no expiry", "PXAT"},
	} {
		s.Do(t, cmd[0].(string), cmd[1:]...)
	}
	want := map[string]time.Time{}
	for _, key := range []string{"set", "not there", "script"} {
		ms, err := redis.Int64(s.Do(t, "PEXPIRETIME", key), nil)
		require.NoError(t, err)
		want[key] = time.UnixMilli(ms)
	}
	require.Equal(t, want, s.Expiries(t))

	s.Do(t, "DEL", "set")
	s.Pause()
	require.Equal(t, want, s.Expiries(t), "of a frozen server, and of a key that is gone")
	s.Kill()
	require.Equal(t, want, s.Expiries(t), "of a dead server")
	s.Restart()
	ms, err := redis.Int64(s.Do(t, "PEXPIRETIME", "script"), nil)
	require.NoError(t, err)
	require.Equal(t, want["script"].UnixMilli(), ms, "the data outlives the process")
}

func TestExpiriesOfAFileThatIsCutOffOrWrong(t *testing.T) {
	t.Parallel()
	const whole = "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\nk\r\n$4\r\n1234\r\n"
	for n := range len(whole) {
		got := map[string]time.Time{}
		require.NoError(t, readExpiries([]byte(whole+"*1\r\n$5\r\nMULTI\r\n"+whole[:n]), got), n)
		require.Equal(t, map[string]time.Time{"k": time.UnixMilli(1234)}, got, n)
	}
	for _, text := range []string{"nonsense\r\n", "*x\r\n", "*0\r\n", "*1\r\n*1\r\n", "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\nk\r\n$1\r\nx\r\n"} {
		require.Error(t, readExpiries([]byte(text), map[string]time.Time{}), text)
	}
}
