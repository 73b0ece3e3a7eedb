package badinput_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// receivedBytes is a connection on which a server has sent something.
type receivedBytes struct {
	net.Conn // never used
	io.Reader
}

// Read is part of net.Conn.
func (s receivedBytes) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// SetReadDeadline is part of net.Conn.
func (receivedBytes) SetReadDeadline(time.Time) error { return nil }

// Close is part of net.Conn.
func (receivedBytes) Close() error { return nil }

// decoders are all that make something of a reply.
var decoders = map[string]func(any) error{
	"acquire":    func(r any) error { reply.Refused(r); _, _, err := reply.Acquired(r); return err },
	"foreign":    func(r any) error { _, _, err := reply.Foreign(r); return err },
	"re-entry":   func(r any) error { _, err := reply.Reentered(r); return err },
	"token":      func(r any) error { _, _, err := reply.Token(r); return err },
	"replicate":  func(r any) error { _, err := reply.Holds(r); return err },
	"release":    func(r any) error { _, err := reply.Released(r); return err },
	"force":      func(r any) error { _, err := reply.Forced(r); return err },
	"exists":     func(r any) error { _, err := reply.Exists(r); return err },
	"renewal":    func(r any) error { _, err := reply.RenewedAt(r, 1, 2); return err },
	"count":      func(r any) error { _, err := reply.Count(r); return err },
	"time left":  func(r any) error { _, err := reply.Millis(r); return err },
	"inspection": func(r any) error { _, err := reply.Inspected(r); return err },
	"heartbeat":  func(r any) error { _, err := reply.DecodeBeat(r); return err },
	"eviction":   func(r any) error { _, err := reply.DecodeEvicted(r); return err },
	"nudge":      func(r any) error { _, err := reply.Nudged(r); return err },
}

// FuzzDecoders lets a server answer every script and command with anything: bytes, as
// they come over the network.
func FuzzDecoders(f *testing.F) {
	for _, answer := range []string{
		"$-1\r\n", ":1\r\n", ":0\r\n", ":-1\r\n", ":-2\r\n", ":30000\r\n", ":9223372036854775807\r\n", "$1\r\n2\r\n", "+OK\r\n", "-ERR x\r\n",
		"*2\r\n:1500\r\n$4\r\nmode\r\n", "*4\r\n:1500\r\n$0\r\n\r\n$3\r\nx:1\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n",
		"*2\r\n:-2\r\n*0\r\n", "*5\r\n:5\r\n*2\r\n$1\r\na\r\n$1\r\n2\r\n*1\r\n$1\r\nb\r\n*2\r\n$1\r\nb\r\n$3\r\ninf\r\n*1\r\n:1\r\n",
		"*4\r\n:-2\r\n*4\r\n$1\r\na\r\n$5\r\n1e400\r\n$1\r\nb\r\n$0\r\n\r\n*1\r\n$1\r\nc\r\n:2\r\n", "*1\r\n*1\r\n*0\r\n", "*0\r\n", "*-1\r\n",
	} {
		f.Add([]byte(answer))
	}
	f.Add([]byte("$2\r\n0"))
	f.Add([]byte("*5\n\n*1A\n0\n\n*1\n*1A\n\n\n"))
	f.Add([]byte("0\r\n"))
	f.Add([]byte("$----------------"))
	f.Add([]byte("$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))
	f.Add([]byte(":-\r\n"))
	f.Add([]byte("$1\r\n\"\r\n"))
	f.Add([]byte("+\xa4\xba\r\n"))
	f.Add([]byte("0\n0\n0\n0\n0\n0\n0\n0"))
	f.Add([]byte("$1\r\n\x7f\r\n"))
	f.Add([]byte(""))
	f.Add([]byte("*0A000\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		conn := redis.NewConn(respconn.Guard(receivedBytes{Reader: bytes.NewReader(answer)}), 0, 0)
		reply, err := respconn.Receive(conn, 0)
		var refusal redis.Error
		if err != nil && !errors.As(err, &refusal) {
			return
		}
		if err != nil {
			short := &transport.ServerError{Text: string(refusal)}
			require.Less(t, len(short.Error()), shortest)
			_ = short.HasCode("WRONGTYPE")
			return
		}
		for name, decode := range decoders {
			if err := decode(reply); err != nil {
				require.ErrorIs(t, err, transport.ErrBadReply, name)
				require.Less(t, len(err.Error()), shortest, name)
			}
		}
	})
}
