package badinput_test

import (
	"context"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// soon bounds what should happen at once, on a slow machine.
const soon = 20 * time.Second

// garbage is what no server sends that means well.
var garbage = map[string]string{
	"half a gigabyte announced":       "$536870912\r\n",
	"more than there is":              "$9223372036854775807\r\n",
	"a length that overflows":         "$99999999999999999999\r\n",
	"a billion elements":              "*1000000000\r\n",
	"elements that overflow":          "*99999999999999999999\r\n",
	"five million levels":             strings.Repeat("*1\r\n", 5_000_000),
	"arrays of arrays of many":        strings.Repeat("*1000000\r\n", 1_000),
	"a line without an end":           "-" + strings.Repeat("x", 64<<20),
	"an error of a mebibyte":          "-" + strings.Repeat("ERR ", mebibyte/4) + "\r\n",
	"a negative length":               "$-2\r\n",
	"a length that is none":           "$x\r\n",
	"a number that is none":           ":one\r\n",
	"a number that overflows":         ":99999999999999999999\r\n",
	"another protocol":                "HTTP/1.1 400 Bad Request\r\n\r\n",
	"RESP3":                           "%1\r\n+a\r\n:1\r\n",
	"an empty line":                   "\r\n",
	"bare newlines":                   "+OK\n+OK\n",
	"NUL":                             "\x00\x00\x00\x00",
	"a string with a wrong end":       "$1\r\nabc\r\n",
	"two replies for one":             ":0\r\n:0\r\n",
	"an array of errors":              "*2\r\n-ERR a\r\n-ERR b\r\n",
	"an array of what is none":        "*2\r\n?\r\n!\r\n",
	"a nil array":                     "*-1\r\n",
	"an error without a word":         "-\r\n",
	"NOSCRIPT for ever":               "-NOSCRIPT x\r\n",
	"an error with control sequences": "-ERR \x1b[2J\x07\r\n",
}

// frugal is by how much the heap may grow while noise is read: many times what a lock
// needs, and less than the least of what is announced.
const frugal = 256 << 20

// heap returns the memory that the heap has from the system.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys) - int64(m.HeapReleased)
}

// Not parallel: it looks at the memory of the whole process.
func TestAnInvalidProtocolIsAnErrorAndCostsNoMemory(t *testing.T) {
	for what, answer := range garbage {
		for _, command := range testlevel.Part([]string{"PING", "EVALSHA", "SUBSCRIBE"}, 3, what) {
			t.Run(what+" to "+command, func(t *testing.T) {
				srv := startFakeServer(t, command, answer)
				debug.FreeOSMemory()
				before, began := heap(), time.Now()
				err := lockOn(t, srv.url())
				assert.LessOrEqual(t, time.Since(began), soon)
				assert.Less(t, heap()-before, int64(frugal), "the heap has grown")
				if err != nil {
					assert.NoError(t, complaint(err))
				}
			})
		}
	}
}

// lockOn takes a lock that is held by another owner, or tries to.
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

// Connections that callers bring are not guarded, but do not end the process.
func TestLengthThatOverflowsIsAnErrorOnConnectionsOfTheCallers(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"PING", "EVALSHA", "SUBSCRIBE"} {
		srv := startFakeServer(t, command, "$99999999999999999999\r\n")
		client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, srv.url())
		}, redlatch.WithCommandTimeout(time.Second))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		_, err = rlock.New(client, "job").Lock(ctx, rlock.WithWait(300*time.Millisecond))
		cancel()
		require.Error(t, err)
		require.NoError(t, complaint(err))
		require.NoError(t, client.Close())
	}
}

// addresses are what people, and mistakes, write where an address belongs. Each has
// the password sesame where an address may have one.
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

func TestAddressesThatMakeNoSenseAreRefusedInOneShortLine(t *testing.T) {
	t.Parallel()
	for _, address := range addresses() {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		began := time.Now()
		client, err := redlatch.Open(ctx, address, redlatch.WithDialTimeout(time.Second), redlatch.WithCommandTimeout(time.Second))
		cancel()
		require.Error(t, err, "%.60q", address)
		require.Nil(t, client)
		require.LessOrEqual(t, time.Since(began), soon)
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

func TestAddressesThatCannotBeListenedOnAreErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for _, address := range append([]string{taken.Addr().String(), "127.0.0.1:99999", "127.0.0.1:-1", "[::1"}, texts...) {
		srv, err := embedded.Start(nil, embedded.WithAddr(address))
		if address == "" {
			// As for net.Listen, that is any port of any interface.
			require.NoError(t, err)
			srv.Close()
			continue
		}
		require.Error(t, err, "%.60q", address)
		require.NoError(t, complaint(err))
	}
}
