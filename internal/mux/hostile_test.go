package mux_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// oddities are replies that the commands of a Mux's own never get from a server that
// means well.
var oddities = []string{
	":0\r\n", ":-1\r\n", ":9223372036854775807\r\n", "+OK\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "$0\r\n\r\n", "$5\r\naddr=\r\n",
	bulk("id=x addr= addr=\x00 =\n\r"), bulk(strings.Repeat("addr=", 1<<18)), "*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "-\r\n", "-ERR \xff\r\n",
	strings.Repeat("*1\r\n", 1000) + ":1\r\n",
}

// What a server says of itself is of use where it makes sense, and does no harm where
// it does not.
func TestOddGreetingsDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, odd := range oddities {
		for _, command := range []string{"PING", "CLIENT"} {
			if command == "PING" && strings.HasPrefix(odd, "-") {
				continue // that is a refusal
			}
			synctest.Test(t, func(t *testing.T) {
				m := open(t, (&peer{}).answer(map[string]string{command: odd}).config())
				require.NoError(t, mux.Ping(t.Context(), m))
				c := transport.NewScript("s", "x")
				call := eval(c, 0)
				require.NoError(t, do(t, m, call).err)
				_ = m.Fence(t.Context(), call) // whatever it says, it says it
			})
		}
	}
}

// What is no reply at all ends the connection, and the call with it: it may have run.
func TestWhatIsNoReplyLeavesTheCallInDoubtAndTheNextOneIsFine(t *testing.T) {
	t.Parallel()
	for _, noise := range []string{
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n", "\n", "$x\r\n", "$-2\r\n", ":\r\n", ":1x\r\n", "%1\r\n", "$1\r\nabc\r\n", "*2\r\n:1\r\n?\r\n",
		"$99999999999999999999\r\n", "*99999999999999999999\r\n", "+OK\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			p.on(func(conn int, args []string) (string, bool) { return noise, conn == 1 && args[0] == "GET" })
			m := open(t, p.config())
			began := time.Now()
			require.ErrorIs(t, do(t, m, command("GET", "x")).err, transport.ErrUncertain, "%q", noise)
			require.NoError(t, do(t, m, command("GET", "x")).err, "%q", noise)
			assert.Less(t, time.Since(began), time.Second)
			assert.Equal(t, 2, p.dialled())
		})
	}
}
