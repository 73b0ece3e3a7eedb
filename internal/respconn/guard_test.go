package respconn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/respconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a connection on which the server has already sent everything.
type script struct {
	net.Conn // never used
	said     io.Reader
	most     int // bytes that one Read returns
}

func (s *script) Read(p []byte) (int, error) { return s.said.Read(p[:min(len(p), s.most)]) }

func (s *script) Write(p []byte) (int, error) { return len(p), nil }

func (s *script) SetReadDeadline(time.Time) error { return nil }

func (s *script) Close() error { return nil }

// says returns a guarded connection that receives text in reads of at most the given size.
func says(text string, most int) net.Conn {
	return respconn.Guard(&script{said: strings.NewReader(text), most: most})
}

// chunks returns the sizes of reads to test.
func chunks(text string) []int {
	if len(text) > 64<<10 {
		return []int{4096} // the others take too long
	}
	return []int{1, 2, 7, 4096}
}

func nested(levels int, in string) string { return strings.Repeat("*1\r\n", levels) + in }

func TestGuardPassesLockReplies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "+OK\r\n", ":-1\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "$0\r\n\r\n", "-ERR no\r\n",
		"$10\r\n0123\r\n*9\r\n\r\n:1\r\n", // a string that looks like a reply
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n",
		nested(16, ":1\r\n"), nested(15, "*2\r\n:1\r\n*0\r\n") + nested(16, "$1\r\nx\r\n"),
		"-" + strings.Repeat("e", 60<<10) + "\r\n",
		"$1048576\r\n" + strings.Repeat("n", 1<<20) + "\r\n:1\r\n",
		"*100000\r\n" + strings.Repeat(":1\r\n", 100_000) + "*100000\r\n" + strings.Repeat(":1\r\n", 100_000),
		strings.Repeat("*530000\r\n"+strings.Repeat("*0\r\n", 530_000), 2), // each reply is counted separately
		"not a reply at all", "\r\n\r\n", "\n",
	} {
		for _, most := range chunks(text) {
			got, err := io.ReadAll(says(text, most))
			require.NoError(t, err, "%.40q", text)
			require.True(t, bytes.Equal([]byte(text), got), "%.40q", text) // too long to print
		}
	}
}

func TestGuardRejectsOversizedReplies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"$33554433\r\n", "$9999999999\r\n", "*9999999999\r\n", "$99999999999999999999999\r\n", "*1048577\r\n", "*99999999999999999999999\r\n", nested(17, ""),
		"*3\r\n*530000\r\n" + strings.Repeat("*0\r\n", 530_000) + "*530000\r\n",
		"-" + strings.Repeat("e", 70<<10) + "\r\n",
		"+OK\r\n*2\r\n:1\r\n$999999999\r\n",
	} {
		for _, most := range chunks(text) {
			conn := says(text, most)
			got, err := io.ReadAll(conn)
			require.ErrorIs(t, err, respconn.ErrLimit, "%.40q", text)
			require.Less(t, len(got), len(text), "%.40q", text)
			require.True(t, strings.HasPrefix(text, string(got)))
			if !strings.HasPrefix(text, "-") {
				require.True(t, strings.HasPrefix(text[len(got):], "\n"), "the passed part ends before the line")
			}
			n, err := conn.Read(make([]byte, 1))
			require.Zero(t, n, "once is for good")
			require.ErrorIs(t, err, respconn.ErrLimit)
		}
	}
}

// blank is an endless reader of zero bytes.
type blank struct{}

func (blank) Read(p []byte) (int, error) { return len(p), nil }

func TestGuardLimitsTotalStringSize(t *testing.T) {
	t.Parallel()
	const strs, size = 9, 32 << 20
	parts := []io.Reader{strings.NewReader("*9\r\n")}
	for range strs {
		parts = append(parts, strings.NewReader("$33554432\r\n"), io.LimitReader(blank{}, size), strings.NewReader("\r\n"))
	}
	n, err := io.Copy(io.Discard, respconn.Guard(&script{said: io.MultiReader(parts...), most: 64 << 10}))
	require.ErrorIs(t, err, respconn.ErrLimit)
	require.Greater(t, n, int64(7*size))
	require.Less(t, n, int64(8*size))
}

// Not parallel: AllocsPerRun counts the whole process.
func TestGuardDoesNotAllocate(t *testing.T) {
	text := strings.Repeat("*2\r\n:1\r\n$3\r\nabc\r\n", 100_000)
	conn := says(text, 512)
	buf := make([]byte, 512)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := conn.Read(buf); err != nil {
			t.Error(err)
		}
	}))
}

func TestReceiveReturnsPanicAsError(t *testing.T) {
	t.Parallel()
	for _, length := range []string{"99999999999999999999", strconv.FormatInt(1<<62, 10)} {
		for _, kind := range []string{"$", "*"} {
			bare := &script{said: strings.NewReader(kind + length + "\r\n"), most: 4096}
			_, _, err := respconn.Receive(redis.NewConn(bare, 0, 0), 0)
			require.ErrorIs(t, err, respconn.ErrLimit)
		}
	}
	conn := redis.NewConn(says("*2\r\n:1\r\n$1\r\nx\r\n", 3), 0, 0)
	reply, _, err := respconn.Receive(conn, time.Second)
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), []byte("x")}, reply)
	_, _, err = respconn.Receive(conn, time.Second)
	require.ErrorIs(t, err, io.EOF)
}

var announces = regexp.MustCompile(`[$*][0-9]{6}`)

// FuzzGuard requires that any input costs the client library little memory and no panic, however it is
// split.
func FuzzGuard(f *testing.F) {
	for _, text := range []string{
		"", "+OK\r\n", ":1\r\n", "$-1\r\n", "$3\r\nabc\r\n", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "*-1\r\n",
		"$99999999999999999999\r\n", "*1000000000\r\n", "*3\r\n*3\r\n*3\r\n", "-ERR x\r\n", "$1-2\r\n", "*1-\r\n", "$5\r\n*9\r\n\r\n", "\n", "\r\n",
		nested(17, ":1\r\n"), "%1\r\n+a\r\n", "$\r\n", "*\r\n", "$+5\r\n", "*1048576\r\n:1\r\n",
	} {
		f.Add([]byte(text), uint8(0))
		f.Add([]byte(text), uint8(200))
	}
	f.Add([]byte("000000\n000"), byte('\b'))
	f.Add([]byte("$AAAAAAAAAA"), byte('ò'))
	f.Add([]byte("00000000"), byte('\x00'))
	f.Add([]byte("*2\r\n$2\r\n0000\r\n"), byte('M'))
	f.Add([]byte("0000000000000000"), byte('\x00'))
	f.Add([]byte("$"), byte(' '))
	f.Add([]byte("$-0000000000000000000-000"), byte('È'))
	f.Fuzz(func(t *testing.T, text []byte, most uint8) {
		whole, errWhole := io.ReadAll(says(string(text), len(text)+1))
		parts, errParts := io.ReadAll(says(string(text), int(most)+1))
		require.Equal(t, errWhole == nil, errParts == nil, "it depends on how it arrives")
		require.True(t, bytes.HasPrefix(text, whole) && bytes.HasPrefix(text, parts))
		require.True(t, errWhole == nil || errors.Is(errWhole, respconn.ErrLimit))

		var before, after runtime.MemStats
		costly := announces.Match(text)
		if costly { // measuring the memory stops the world
			runtime.ReadMemStats(&before)
		}
		conn := redis.NewConn(says(string(text), int(most)+1), 0, 0)
		for {
			if _, err := conn.(redis.ConnWithTimeout).ReceiveWithTimeout(0); conn.Err() != nil {
				assert.Error(t, err)
				break
			}
		}
		if costly {
			runtime.ReadMemStats(&after)
		}
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
	})
}

// deadlines counts and records deadlines.
type deadlines struct {
	net.Conn        // never used
	reads, writes   int
	readBy, writeBy time.Time
}

func (d *deadlines) Write(p []byte) (int, error) { return len(p), nil }

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.reads++
	d.readBy = t
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.writes++
	d.writeBy = t
	return nil
}

func TestWriteDeadlineCoversThreeQuartersOfTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &deadlines{}
		const bound = 4 * time.Second
		conn := respconn.Bounded(under, bound)
		for range 3001 {
			n, err := conn.Write([]byte("all"))
			require.NoError(t, err)
			require.Equal(t, 3, n)
			left := time.Until(under.writeBy)
			require.GreaterOrEqual(t, left, bound*3/4)
			require.LessOrEqual(t, left, bound)
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, 3, under.writes, "and no unnecessary deadline is set")
		time.Sleep(time.Hour)
		_, err := conn.Write([]byte("late"))
		require.NoError(t, err)
		require.Equal(t, bound, time.Until(under.writeBy), "also after a pause")
	})
}

func TestReadDeadlineIsSetOnlyWhenChanged(t *testing.T) {
	under := &deadlines{}
	conn := respconn.Bounded(under, time.Second)
	soon := time.Now().Add(time.Second)
	for range 3 {
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		require.Equal(t, 1, under.reads, "there may have been one")
	}
	for i := range 3 {
		require.NoError(t, conn.SetReadDeadline(soon.Add(time.Duration(i))))
		require.Equal(t, soon.Add(time.Duration(i)), under.readBy)
	}
	for range 3 {
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		require.True(t, under.readBy.IsZero())
	}
	require.Equal(t, 5, under.reads)
}

// The client library removes a deadline left by the dial function's handshake.
func TestHandshakeReadDeadlineIsCleared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		require.NoError(t, ours.SetReadDeadline(time.Now().Add(time.Second)))
		conn := respconn.NewConn(ours, time.Second)
		defer func() { require.NoError(t, theirs.Close()) }()
		time.AfterFunc(time.Minute, func() { _, _ = theirs.Write([]byte("+late\r\n")) })
		reply, _, err := respconn.Receive(conn, 0)
		require.NoError(t, err)
		require.Equal(t, "late", reply)
		require.NoError(t, conn.Close())
	})
}
