package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timeReply is what TIME answers: seconds and microseconds. No other reply in a fleet begins
// with nine digits.
var timeReply = regexp.MustCompile(`\*2\r\n\$9\r\n(\d{9})\r\n\$\d\r\n(\d{1,6})\r\n`)

// shiftTime makes the time in a reply later by what the client's clock is to be ahead. A
// client that uses the server's time then gives its fair locks a time that is as wrong as
// that of such a clock.
func shiftTime(replies []byte, ahead time.Duration) []byte {
	if ahead == 0 {
		return replies
	}
	return timeReply.ReplaceAllFunc(replies, func(reply []byte) []byte {
		parts := timeReply.FindSubmatch(reply)
		seconds, _ := strconv.ParseInt(string(parts[1]), 10, 64) // digits
		micros, _ := strconv.ParseInt(string(parts[2]), 10, 64)
		at := time.Unix(seconds, micros*1000).Add(ahead).UnixMicro()
		s, us := strconv.FormatInt(at/1e6, 10), strconv.FormatInt(at%1e6, 10)
		return fmt.Appendf(nil, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(s), s, len(us), us)
	})
}

func TestTheReplyToTimeIsShiftedAndNoOther(t *testing.T) {
	t.Parallel()
	const replies = "+OK\r\n*2\r\n$9\r\n946684800\r\n$1\r\n7\r\n*2\r\n$3\r\nabc\r\n$1\r\n1\r\n"
	require.Equal(t, "+OK\r\n*2\r\n$9\r\n946684860\r\n$6\r\n700007\r\n*2\r\n$3\r\nabc\r\n$1\r\n1\r\n",
		string(shiftTime([]byte(replies), 60_700*time.Millisecond)))
	require.Equal(t, replies, string(shiftTime([]byte(replies), 0)))
}
