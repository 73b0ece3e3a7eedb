package connect

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// Clients do not send the user unless there is a password.
func TestUserInAddressNeedsPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"redis://onlooker:@127.0.0.1:1", "unix://onlooker@/no/such/socket", "unix://onlooker:@/no/such/socket",
		"redis-cluster://onlooker@127.0.0.1:1", "redis-sentinel://onlooker@127.0.0.1:1/m",
	} {
		_, err := New(Settings{Address: address})
		require.ErrorContains(t, err, "needs a password", address)
		require.NotContains(t, err.Error(), "onlooker")
		server(t, Settings{Address: address, Password: "any"})
	}
	require.Equal(t, "redis://sesame@h:6379", at(t, "redis://sesame@h").at.Full(), "over TCP it is the password")
}

func TestProbeDecidesHealth(t *testing.T) {
	t.Parallel()
	for _, late := range []health{silent, delaying} {
		require.Equal(t, answering, healthBy(nil, late))
		require.Equal(t, answering, healthBy(redis.Error("NOPERM no right to EVAL"), late))
		require.Equal(t, late, healthBy(os.ErrDeadlineExceeded, late))
		require.Equal(t, unclear, healthBy(io.EOF, late))
	}
}

func TestUnknownRejectionGetsNoAdvice(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ERR something else", "DENIED Redis is running in protected mode", "NEWCODE of a later version"} {
		for _, address := range []string{"redis://h:1", "redis-cluster://h:1"} {
			s := at(t, address)
			require.EqualError(t, s.Problem(redis.Error(text)), "Redis at "+address+" rejected the request: "+text)
			require.Empty(t, Remedy(redis.Error(text)))
		}
	}
	require.EqualError(t, at(t, "redis-cluster://h:1").Problem(redis.Error("MOVED 7 h:2")),
		"Redis at redis-cluster://h:1 rejected the request: MOVED 7 h:2", "the cluster was named")
}

func TestSentinelBehindServerAddressIsNamed(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t, redistest.Start(t).Addr())
	s := at(t, "redis://"+sentinel.Addr())
	c, err := s.Dial(t.Context())
	require.NoError(t, err)
	defer func() { _ = c.Close() }() // nothing was written
	_, err = c.Do("EVALSHA", "0", 0)
	require.ErrorContains(t, s.Problem(err), "It is a Sentinel, which does not store locks: list the Sentinels")
	require.ErrorContains(t, s.Problem(err), "redis-sentinel://"+sentinel.Addr()+"/MASTER")
	require.ErrorContains(t, at(t, "redis-cluster://"+sentinel.Addr()).Problem(err), "It is a Sentinel")
}

func TestPausedWritesAreReported(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := at(t, srv.URL())
	late := fmt.Errorf("lock: %w: no reply within 3s", transport.ErrUncertain)
	srv.Do(t, "CLIENT", "PAUSE", time.Hour.Milliseconds(), "WRITE")
	said := eventually(t, "answers PING, but delays writes: CLIENT PAUSE or FAILOVER has paused them", func() error { return s.Problem(late) })
	require.ErrorIs(t, said, transport.ErrUncertain)
	srv.Do(t, "CLIENT", "UNPAUSE")
}

func TestUnreachableNodeIsNamedByItsOwnAddress(t *testing.T) {
	t.Parallel()
	s := at(t, "redis-cluster://127.0.0.1:1")
	down := fmt.Errorf("lock: %w: %w", transport.ErrNotSent, os.NewSyscallError("connect", syscall.ECONNREFUSED))
	for _, err := range []error{s.Problem(redisconn.AtNode("h:9", down)), s.member("h:9").Problem(down)} {
		require.ErrorContains(t, err, "cannot reach Redis at h:9, a master of "+s.String()+": connection refused. If it is down, a replica replaces it")
		require.ErrorContains(t, err, "see cluster-announce-ip")
		require.ErrorIs(t, err, transport.ErrNotSent)
	}
	sentinels := at(t, "redis-sentinel://h:1/m")
	for _, err := range []error{sentinels.Problem(redisconn.AtNode("h:9", down)), sentinels.member("h:9").Problem(down)} {
		require.ErrorContains(t, err, "cannot reach Redis at h:9, the master that redis-sentinel://h:1/m names: connection refused. If it is down, the Sentinels")
		require.ErrorContains(t, err, "see replica-announce-ip")
	}
}

func TestExplainAddsRemedyForRejection(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("inspect: %w", &transport.ServerError{Text: "NOREPLICAS Not enough good replicas to write."})
	require.EqualError(t, Explain(full), "rejected by the server: NOREPLICAS Not enough good replicas to write. "+remedies["NOREPLICAS"])
	require.ErrorIs(t, Explain(full), full)
	require.EqualError(t, Explain(redis.Error("ERR something else")), "rejected by the server: ERR something else")
	for _, err := range []error{nil, transport.ErrNotSent, at(t, "redis://h:1").Problem(full)} {
		require.Equal(t, err, Explain(err))
	}
}

// program listens on a port, and calls answer with each connection.
func program(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
			_ = c.Close() // the other side may have closed it
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-over
	})
	return l.Addr().String()
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) { talk(c, text) }
}

func answers(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			talk(c, text)
		}
	}
}

// talk sends text. It keeps reading, because closing a connection with unread bytes would discard
// the text.
func talk(c net.Conn, text string) {
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.WriteString(c, text)
	_, _ = io.Copy(io.Discard, c)
}

func TestNonRedisGreetingIsQuoted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer func(net.Conn)
		says   string
	}{
		{says("SSH-2.0-OpenSSH_9.2p1\r\n"), `is not Redis: it replied "SSH-2.0-OpenSSH_9.2p1", like an SSH server. Check the host and the port`},
		{answers("HTTP/1.1 400 Bad Request\r\n\r\n400"), `is not Redis: it replied "HTTP/1.1 400 Bad Request", like a web server. Check the host and the port`},
		{says("220 mail.example ESMTP\r\n"), `is not Redis: it replied "220 mail.example ESMTP". Check`},
		{says(strings.Repeat("x", 100) + "\r\n"), `it replied "` + strings.Repeat("x", 58) + `..". Check`},
		{says("\x1b[2J\x00\r\n"), `it replied "\x1b[2J\x00". Check`},
		{answers("\x15\x03\x01\x00\x02\x02\x0a\n"), "requires TLS: use rediss://"},
	} {
		addr := program(t, c.answer)
		for _, scheme := range []string{"redis", "redis-cluster"} {
			s := at(t, scheme+"://"+addr)
			eventually(t, c.says, func() error { return second(s.Open(t.Context())) })
			err := eventually(t, "the server at "+scheme+"://"+addr+" ", func() error {
				conn, err := s.Dial(t.Context())
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()       // it is broken
				return s.Problem(second(conn.Do("PING"))) // dialing sends nothing
			})
			require.NotContains(t, err.Error(), "Start one")
		}
	}
	s := redistest.Start(t)
	require.Nil(t, at(t, s.URL()).answer(), "Redis is called no Redis")
}

// A server, which may be hostile, names its master.
func TestReplicaAdviceQuotesMaster(t *testing.T) {
	t.Parallel()
	s := at(t, "redis://h:1")
	for host, want := range map[string]string{
		"10.0.0.1": ", with --redis redis://10.0.0.1:6379", "::1": ", with --redis 'redis://[::1]:6379'",
		"h;touch${IFS}x": ", with --redis 'redis://h;touch$%7BIFS%7Dx:6379'", "h';touch": "",
	} {
		on := &OnReplica{Server: s, Master: s.node(net.JoinHostPort(host, "6379"))}
		_, advice, _ := strings.Cut(on.Error(), "use its master")
		require.Equal(t, want, advice)
	}
}

func TestUnsupportedAddressOptionIsRejectedBeforeDial(t *testing.T) {
	t.Parallel()
	for address, says := range map[string]string{
		"redis://h/0?dial_timeout=5s":  "a single server does not support options",
		"redis://h#1":                  "remove the #",
		"redis://h/orders":             "the database must be a number from 0",
		"redis://h/-1":                 "the database must be a number from 0",
		"redis://h/2147483648":         "the database must be a number from 0",
		"redis://h:99999":              "the port must be a number from 1 to 65535",
		"unix:///run/r.sock?db=x":      "the database must be a number from 0",
		"unix:///run/r.sock?timeout=1": "supports only the option db",
		"redis://:ab/cd@h":             "or put the password into REDIS_PASSWORD or a file for --password-file",
	} {
		_, err := New(Settings{Address: address})
		require.ErrorContains(t, err, says, address)
		require.NotContains(t, err.Error(), "Start one")
	}
	require.ErrorContains(t, at(t, "redis://h.invalid").Problem(&net.DNSError{Err: "no such host"}),
		"no such host. Check the host in --redis or REDIS_URL.")
}

// doctor cannot examine a deployment whose masters are unknown.
func TestDenialsByDeploymentNameTheRule(t *testing.T) {
	t.Parallel()
	sentinels := at(t, "redis-sentinel://app:any@s:1/m?sentinel_user=watcher&sentinel_password=any")
	err := func(text string) error { return errors.Join(fmt.Errorf("sentinel s:1: %w", redis.Error(text))) }
	require.EqualError(t, sentinels.Problem(err("NOPERM User watcher has no permissions to run the 'sentinel|master' command")),
		"the Sentinel at s:1 rejected the request: NOPERM User watcher has no permissions to run the 'sentinel|master' command. "+
			"As an administrator of the Sentinels: ACL SETUSER watcher +sentinel|master +sentinel|get-master-addr-by-name +sentinel|sentinels")
	for _, text := range []string{"NOAUTH Authentication required.", "WRONGPASS invalid"} {
		require.ErrorContains(t, sentinels.Problem(err(text)), "Set the Sentinels' user and password in the address, in REDIS_URL: ?sentinel_user=")
	}
	require.ErrorContains(t, sentinels.Problem(err("ERR No such master with that name")), "use the master's name that the Sentinels know")
	require.EqualError(t, at(t, "redis-cluster://app:any@h:1").Problem(redis.Error("NOPERM User app has no permissions to run the 'cluster|slots' command")),
		"Redis at redis-cluster://h:1 rejected the request: NOPERM User app has no permissions to run the 'cluster|slots' command. "+
			"As an administrator: ACL SETUSER app +cluster|slots +pubsub|shardnumsub")
}

func TestRejectingSentinelIsNamed(t *testing.T) {
	t.Parallel()
	s := at(t, "redis-sentinel://a:1,b:2/m")
	down := fmt.Errorf("sentinel a:1: %w", os.NewSyscallError("connect", syscall.ECONNREFUSED))
	for _, host := range []string{"b:2", "10.0.0.7:26379"} { // also one that another Sentinel named
		err := errors.Join(down, fmt.Errorf("sentinel %s: %w", host, redis.Error("NOAUTH Authentication required.")))
		require.ErrorContains(t, s.Problem(err), "the Sentinel at "+host+" rejected the request: NOAUTH Authentication required. Set the Sentinels' user")
	}
	master := redisconn.AtNode("c:3", redis.Error("NOAUTH Authentication required."))
	require.ErrorContains(t, s.Problem(errors.Join(down, master)), "Redis at c:3, the master that redis-sentinel://a:1,b:2/m names rejected the request")
}

func TestOneNodeClusterIsWhole(t *testing.T) {
	t.Parallel()
	s := redistest.StartCluster(t, 1, 0).Nodes()[0]
	require.NoError(t, CheckWhole(s.Dial(t), "it"))
	s.Do(t, "ACL", "SETUSER", "default", "-cluster|slots")
	require.ErrorContains(t, CheckWhole(s.Dial(t), "it"), "has only part")
}

// closedAfterReply is a connection that is closed, because a context has ended, between a reply and the call to Err.
type closedAfterReply struct {
	redis.Conn

	role []any
}

func (c closedAfterReply) Do(string, ...any) (any, error) { return c.role, nil }
func (closedAfterReply) Err() error                       { return net.ErrClosed }

func TestMasterIsKnownIfContextEndsAfterReply(t *testing.T) {
	t.Parallel()
	role := []any{[]byte("slave"), []byte("h"), int64(6379)}
	master, err := at(t, "redis://r").masterFrom(closedAfterReply{role: role})
	require.NoError(t, err)
	require.Equal(t, "h:6379", master)
}
