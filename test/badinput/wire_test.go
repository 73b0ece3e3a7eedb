package badinput_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// garbage is invalid server output.
var garbage = map[string]string{
	"half a gigabyte announced":       "$536870912\r\n",
	"an exabyte announced":            "$9223372036854775807\r\n",
	"a length that overflows":         "$99999999999999999999\r\n",
	"a billion elements":              "*1000000000\r\n",
	"elements that overflow":          "*99999999999999999999\r\n",
	"millions of levels":              strings.Repeat("*1\r\n", testlevel.Rounds(500_000, 5_000_000)),
	"arrays of arrays of many":        strings.Repeat("*1000000\r\n", 1_000),
	"a line without an end":           "-" + strings.Repeat("x", 64*long),
	"an error of a mebibyte":          "-" + strings.Repeat("ERR ", mebibyte/4) + "\r\n",
	"a negative length":               "$-2\r\n",
	"an invalid length":               "$x\r\n",
	"an invalid number":               ":one\r\n",
	"a number that overflows":         ":99999999999999999999\r\n",
	"another protocol":                "HTTP/1.1 400 Bad Request\r\n\r\n",
	"RESP3":                           "%1\r\n+a\r\n:1\r\n",
	"an empty line":                   "\r\n",
	"bare newlines":                   "+OK\n+OK\n",
	"NUL":                             "\x00\x00\x00\x00",
	"a string with a wrong end":       "$1\r\nabc\r\n",
	"two replies for one":             ":0\r\n:0\r\n",
	"an array of errors":              "*2\r\n-ERR a\r\n-ERR b\r\n",
	"an array of invalid elements":    "*2\r\n?\r\n!\r\n",
	"a nil array":                     "*-1\r\n",
	"an empty error":                  "-\r\n",
	"NOSCRIPT forever":                "-NOSCRIPT x\r\n",
	"an error with control sequences": "-ERR \x1b[2J\x07\r\n",
}

// frugal is the maximum growth of the heap while garbage is read. It is far more than a lock needs, and less than any
// announced size.
const frugal = 256 << 20

// heap returns the size of the memory that the heap has obtained from the system.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys) - int64(m.HeapReleased)
}

// This test is not parallel because it measures the memory of the whole process.
func TestInvalidProtocolReturnsErrorWithoutAllocation(t *testing.T) {
	for _, what := range testlevel.Part(slices.Sorted(maps.Keys(garbage)), 2, "") {
		answer := garbage[what]
		for _, command := range testlevel.Part([]string{"PING", "EVALSHA", "SUBSCRIBE"}, 3, what) {
			t.Run(what+" to "+command, func(t *testing.T) {
				srv := startFakeServer(t, command, answer)
				debug.FreeOSMemory()
				before := heap()
				err := lockOn(t, srv)
				assert.Less(t, heap()-before, int64(frugal), "the heap has grown")
				if err != nil {
					assert.NoError(t, complaint(err))
				}
			})
		}
	}
}

// lockOn tries to acquire a lock held by another owner.
func lockOn(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	client, err := redlatch.Open(ctx, url,
		redlatch.WithDialTimeout(time.Second), redlatch.WithCommandTimeout(300*time.Millisecond))
	if err != nil {
		return err
	}
	defer func() { assert.NoError(t, client.Close()) }()
	hold, err := rlock.New(client, "job").Lock(ctx, rlock.WithWait(100*time.Millisecond))
	if err == nil {
		err = hold.Unlock()
	}
	return err
}

// Connections from a caller's dial function have no limits, but must not crash the process.
func TestLengthOverflowReturnsErrorOnDialedConn(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"PING", "EVALSHA", "SUBSCRIBE"} {
		srv := startFakeServer(t, command, "$99999999999999999999\r\n")
		client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, srv)
		}, redlatch.WithCommandTimeout(time.Second))
		require.NoError(t, err)
		_, err = rlock.New(client, "job").Lock(t.Context(), rlock.WithWait(300*time.Millisecond))
		require.Error(t, err)
		require.NoError(t, complaint(err))
		require.NoError(t, client.Close())
	}
}

// addresses returns plausible and wrong addresses. They contain the password sesame if they can contain a password.
func addresses() []string {
	long := strings.Repeat("p", mebibyte)
	all := []string{
		"redis://", "redis:///0", "rediss://", "unix://", "unix://:sesame@", "redis:sesame@host", "redis//:sesame@host", "redis:/:sesame@host", "redis:///:sesame@host", "unix:////:sesame@x?db=z", "redis://h/:sesame@x",
		"redis://:sesame@127.0.0.1:1/x", "redis://:sesame@127.0.0.1:1/-1", "redis://:sesame@127.0.0.1:1/9223372036854775808",
		"redis://:sesame@127.0.0.1:99999", "redis://:sesame@127.0.0.1:-1", "redis://:sesame@127.0.0.1:port",
		"redis://:sesame@[::1", "redis://:ses%zzame@127.0.0.1", "http://:sesame@127.0.0.1:1", "sesame",
		"unix://:sesame@/nowhere?db=x", "unix://:sesame@/nowhere?db=-1", "unix://:sesame@/" + long,
		"redis://:sesame@127.0.0.1:1/" + long, "redis://:sesame@127.0.0.1:1", "rediss://:sesame@127.0.0.1:1", "redis://:sesame@" + long + ":x",
		"unix://:sesame@/nowhere?db=" + long, "unix:///" + long[:3000], "redis://127.0.0.1:1/" + long[:3000], "redis://u:sesame\x00@127.0.0.1:1", "redis://u:sesame@127.0.0.1:1/0\r\nX",
	}
	return append(all, texts...)
}

func TestInvalidAddressErrorIsOneShortLine(t *testing.T) {
	t.Parallel()
	for _, address := range addresses() {
		client, err := redlatch.Open(t.Context(), address, redlatch.WithDialTimeout(time.Second), redlatch.WithCommandTimeout(time.Second))
		require.Error(t, err, "%.60q", address)
		require.Nil(t, client)
		require.NoError(t, complaint(err))
		require.Less(t, len(err.Error()), 6144, "%.60q", address)
		require.NotContains(t, err.Error(), "\n", "%.60q", address)
		if address != "sesame" {
			require.NotContains(t, err.Error(), "sesame", "%.60q", address)
		}
	}
	require.PanicsWithValue(t, "redlatch: nil Context", func() {
		_, _ = redlatch.Open(nil, "redis://127.0.0.1:1") //nolint:staticcheck // the mistake
	})
}

func TestInvalidListenAddressReturnsError(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for _, address := range append([]string{taken.Addr().String(), "127.0.0.1:99999", "127.0.0.1:-1", "[::1"}, texts...) {
		srv, err := embedded.Start(nil, embedded.WithAddr(address))
		if address == "" {
			// As with net.Listen, this means any port on any interface.
			require.NoError(t, err)
			srv.Close()
			continue
		}
		require.Error(t, err, "%.60q", address)
		require.NoError(t, complaint(err))
	}
}

// proper are the replies to the scripts and commands of an uncontended lock.
func proper(c *transport.Call) any {
	switch c.Name() {
	case "reenter", "fair_reenter", "replicate", "release", "fair_release", "release_shared", "fair_release_shared",
		"force_release", "fair_force_release", "fair_nudge":
		return int64(1)
	case "renew":
		held := make([]any, c.NumKeys)
		for i := range held {
			held[i] = int64(1)
		}
		return held
	case "inspect":
		return []any{int64(-2), []any{}}
	case "fair_inspect":
		return []any{int64(5000), []any{"holder", "1"}, []any{"first", "second"}, []any{"first", "1", "second", "2"}, []any{int64(0)}, int64(2)}
	case "fair_heartbeat":
		return []any{int64(5000), []any{"first", "1", "second", "2"}, []any{}, int64(2)}
	case "fair_evict":
		return []any{"first"}
	case "EXISTS", "HEXISTS", "DEL":
		return int64(0)
	case "PTTL":
		return int64(-2)
	case "TIME":
		return []any{"946684800", "0"} // when bubbles begin
	}
	return nil // acquire, give up, HGET
}

// tooMany is the maximum number of calls in a test. If there are more, a caller does not pause. A TTL of 1 ms in every
// reply causes 5000 calls in ten seconds.
const tooMany = 8000

// fake is a transport with valid replies, except to one script or command.
type fake struct {
	target string // or ""
	reply  any    // to target

	mu     sync.Mutex // guards the fields below
	closed bool
	calls  int
	struck int // number of calls to the target
}

func newFake() *fake { return &fake{} }

func (f *fake) Start(c *transport.Call, done transport.Done) {
	f.mu.Lock()
	f.calls++
	over := f.closed || f.calls > tooMany
	hit := c.Name() == f.target
	if hit {
		f.struck++
	}
	f.mu.Unlock()
	switch {
	case over, !c.Claim(1):
		done(nil, fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed))
	case !hit:
		done(proper(c), nil)
	default:
		if err, refused := f.reply.(*transport.ServerError); refused {
			done(nil, err)
			return
		}
		done(f.reply, nil)
	}
}

func (f *fake) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	return quiet{make(chan transport.Event)}, ctx.Err()
}

func (f *fake) PublishCommand() string { return "PUBLISH" }

// Listeners reports a listener on the first channel.
func (f *fake) Listeners(_ context.Context, channels ...string) ([]int64, error) {
	counts := make([]int64, len(channels))
	if len(counts) > 0 {
		counts[0] = 1
	}
	return counts, nil
}

// Replicate reports that a replica has all writes.
func (f *fake) Replicate(c *transport.Call, _ int, _ time.Duration, done func(any, int64, error)) {
	f.Start(c, func(reply any, err error) { done(reply, 1, err) })
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// counts returns the number of all calls and of calls to the target.
func (f *fake) counts() (calls, struck int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.struck
}

// quiet is a subscription without messages.
type quiet struct{ events chan transport.Event }

func (q quiet) Events() <-chan transport.Event { return q.events }

func (quiet) Err() error { return nil }

func (quiet) Close() {}

// receivedBytes is a connection on which a server has sent something.
type receivedBytes struct {
	net.Conn // never used
	io.Reader
}

func (s receivedBytes) Read(p []byte) (int, error) { return s.Reader.Read(p) }

func (receivedBytes) SetReadDeadline(time.Time) error { return nil }

func (receivedBytes) Close() error { return nil }

// decode calls each function of package reply with a reply and returns their errors.
func decode(answer any) (errs []error) {
	for _, f := range functions {
		call := reflect.ValueOf(f)
		if of := call.Type(); of.NumIn() > 0 && of.In(0) == typeOf[any]() {
			in := []reflect.Value{asArgument(answer, of.In(0)), reflect.ValueOf(1), reflect.ValueOf(2)}
			out := call.Call(in[:of.NumIn()])
			if err, failed := out[len(out)-1].Interface().(error); failed {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// FuzzDecoders makes a server reply to every script and command with arbitrary bytes.
func FuzzDecoders(f *testing.F) {
	for _, answer := range []string{
		"$-1\r\n", ":1\r\n", ":0\r\n", ":-1\r\n", ":-2\r\n", ":30000\r\n", ":9223372036854775807\r\n", "$1\r\n2\r\n", "+OK\r\n", "-ERR x\r\n",
		"*2\r\n:1500\r\n$4\r\nmode\r\n", "*4\r\n:1500\r\n$0\r\n\r\n$3\r\nx:1\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n",
		"*2\r\n:-2\r\n*0\r\n", "*5\r\n:5\r\n*2\r\n$1\r\na\r\n$1\r\n2\r\n*1\r\n$1\r\nb\r\n*2\r\n$1\r\nb\r\n$3\r\ninf\r\n*1\r\n:1\r\n",
		"*4\r\n:-2\r\n*4\r\n$1\r\na\r\n$5\r\n1e400\r\n$1\r\nb\r\n$0\r\n\r\n*1\r\n$1\r\nc\r\n:2\r\n", "*1\r\n*1\r\n*0\r\n", "*0\r\n", "*-1\r\n",
	} {
		f.Add([]byte(answer))
	}
	for _, answer := range []string{
		"$2\r\n0", "*5\n\n*1A\n0\n\n*1\n*1A\n\n\n", "0\r\n", "$----------------", "$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ":-\r\n", "$1\r\n\"\r\n",
		"+\xa4\xba\r\n", "0\n0\n0\n0\n0\n0\n0\n0", "$1\r\n\x7f\r\n", "", "*0A000\r\n",
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		conn := redis.NewConn(respconn.Guard(receivedBytes{Reader: bytes.NewReader(answer)}), 0, 0)
		reply, refusal, err := respconn.Receive(conn, 0)
		if err != nil {
			return
		}
		if refusal != nil {
			require.Less(t, len(refusal.Error()), shortest)
			_ = transport.IsCode(refusal, "WRONGTYPE")
			return
		}
		for _, err := range decode(reply) {
			require.ErrorIs(t, err, transport.ErrBadReply)
			require.Less(t, len(err.Error()), shortest)
		}
	})
}
