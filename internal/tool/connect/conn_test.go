package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNewRejectsInvalidAddressWithoutEchoingIt(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"redis://h", "redis://u:p@h:1/2", "rediss://:p@h", "unix:///run/redis.sock?db=1", "redis://[::1]:6379",
	} {
		at(t, good)
	}
	for _, bad := range []string{
		"", "localhost:6379", "user:sesame@host:6379", "redis://", "redis:///1", "http://u:sesame@h", "unix://", "redis://u:sesame@h:port", ":",
		"redis://u:sesame:h:1", "redis://u:12/sesame@h", "redis://u:12?sesame@h", "redis://u:12#sesame@h", "unix://:sesame@x/run/r", "unix:////:sesame@x",
	} {
		_, err := New(Settings{Address: bad})
		require.ErrorContains(t, err, "REDIS_URL", bad)
		require.NotContains(t, err.Error(), "sesame")
	}
}

func server(t *testing.T, set Settings) *Server {
	t.Helper()
	s, err := New(set)
	require.NoError(t, err)
	return s
}

func at(t *testing.T, address string) *Server {
	t.Helper()
	return server(t, Settings{Address: address})
}

func TestProblemStatesRemedy(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	s := at(t, "redis://:sesame@h:1")
	require.EqualError(t, s.Problem(fmt.Errorf("open: %w", refused)),
		"cannot reach Redis at redis://h:1: connection refused. Start one, or set --redis or REDIS_URL.")
	for address, serve := range map[string]string{
		"redis://127.0.0.1": "redlatch serve", "redis://localhost": "redlatch serve", "redis://127.0.0.1:7000": "redlatch serve --addr 127.0.0.1:7000",
		"redis://[::1]:7000": "redlatch serve --addr '[::1]:7000'", "rediss://localhost": "", "unix:///run/r.sock": "",
	} {
		text := at(t, address).Problem(refused).Error()
		require.Equal(t, serve != "", strings.HasSuffix(text, "; `"+serve+"` starts one for development."), text)
	}
	for _, c := range []struct {
		err  error
		says string
	}{
		{redis.Error("NOAUTH Authentication required."), "rejected the request: NOAUTH Authentication required. Check the user and password: --user, and REDIS_PASSWORD"},
		{redis.Error("WRONGPASS invalid"), "Check the user (--user, or in the address) and password"},
		{&transport.ServerError{Text: "NOPERM no permissions"}, "`redlatch doctor` shows the missing rights"},
		{redis.Error("ERR DB index is out of range"), "index is out of range. It does not have this database: most servers have 0 to 15. The address in --redis"},
		{redis.Error("ERR SELECT is not allowed in cluster mode"), "It is a cluster node, which has database 0 only: remove the number"},
		{redis.Error("WRONGTYPE Operation against a key"), "Another program uses a key of the lock: `redlatch status` names the key."},
		{redis.Error("ERR AUTH <password> called without any password configured for the default user."), "The server has no password: remove REDIS_PASSWORD"},
		{redis.Error("ERR max number of clients reached"), "clients reached. It has reached its connection limit"},
		{redis.Error("NOREPLICAS Not enough good replicas to write."), "than min-replicas-to-write requires"},
		{redis.Error("MASTERDOWN Link with MASTER is down"), "It is a replica that has lost its master"},
		{redis.Error("CLUSTERDOWN The cluster is down"), "A master is down, or some slots have no master."},
		{redis.Error("TRYAGAIN Multiple keys request during rehashing of slot"), "The slot of this name is moving"},
		{redis.Error("READONLY You can't write against a read only replica"), "replica. It is a replica: use its master"},
		{redis.Error("OOM command not allowed when used memory > 'maxmemory'"), "'maxmemory'. Its memory is full: free memory"},
		{redis.Error("LOADING Redis is loading the dataset in memory"), "memory. It has just started: wait until it has loaded its data"},
		{redis.Error("BUSY Redis is busy running a script"), "script. A client's script has been running for a long time: SCRIPT KILL"},
		{redis.Error("MISCONF Redis is configured to save RDB snapshots"), "snapshots. It cannot save its data, so it rejects writes: check its log and its disk"},
		{x509.UnknownAuthorityError{}, "Set --tls-ca"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, "--tls-server-name"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "first record does not look like a TLS handshake. This port does not use TLS"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "it replied tls: certificate required. Set --tls-cert and --tls-key"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, "not supported. Redlatch needs TLS 1.2"},
		{io.EOF, "it closed the connection. If this port uses TLS, use an address that starts with rediss"},
		{syscall.ECONNRESET, "If this port uses TLS, use an address that starts with rediss"},
	} {
		said := s.Problem(fmt.Errorf("open: %w", c.err))
		require.ErrorContains(t, said, c.says)
		require.NotContains(t, said.Error(), "sesame")
		require.ErrorIs(t, said, c.err)
		require.Equal(t, said, s.Problem(fmt.Errorf("again: %w", said)), "a problem is wrapped in another")
	}
	// Redis 6 puts a minus sign before a refusal within a script.
	require.EqualError(t, s.Problem(redis.Error("ERR Error running script (call to f_d10da0e3d9e12b1b7b53f4e0d04c6bd8f6d2b5a4): @user_script:1: @user_script: 1: "+
		"-OOM command not allowed when used memory > 'maxmemory'.  ")),
		"Redis at redis://h:1 rejected the request: OOM command not allowed when used memory > 'maxmemory'. "+remedies["OOM"])
	invalid := fmt.Errorf("%w: the name", redlatch.ErrInvalid)
	require.Equal(t, invalid, s.Problem(invalid), "no server is to blame for an argument")
	require.ErrorContains(t, at(t, "rediss://h").Problem(io.EOF), "set --tls-cert and --tls-key")
	require.NotContains(t, at(t, "unix:///run/r.sock").Problem(io.EOF).Error(), "rediss")
}

func TestDenialsNameMissingRight(t *testing.T) {
	t.Parallel()
	const (
		script = " script: 4f0bd94a7ab6a9ec2bea6ac9b84f4ab9ed26a6a0, on @user_script:17."
		remedy = "`redlatch doctor` shows the missing rights; docs/operations.md explains them."
		this   = "The user may not use this name (see doctor --prefix). "
	)
	s := at(t, "redis://h:1")
	for _, c := range []struct{ before, text, behind, lacks string }{
		{"", "NOPERM User locks has no permissions to run the 'client|info' command", "", "The user lacks +client|info. "},
		{"", "NOPERM ACL failure in script: User locks has no permissions to run the 'hset' command", script, "The user lacks +hset. "},
		{"", "NOPERM No permissions to access a key", "", this},
		{"", "NOPERM No permissions to access a channel", "", this},
		{"", "ERR ACL failure in script: User locks has no permissions to run the 'hset' command", script, "The user lacks +hset. "},
		{"", "ERR The user executing the script can't run this command or subcommand", script, ""},
		{
			"ERR Error running script (call to f_4f0bd94a7ab6a9ec2bea6ac9b84f4ab9ed26a6a0): @user_script:9: @user_script: 9: ",
			"The user executing the script can't run this command or subcommand", "", "",
		},
	} {
		text := c.before + c.text + c.behind
		for _, err := range []error{redis.Error(text), fmt.Errorf("lock: %w", &transport.ServerError{Text: text})} {
			require.EqualError(t, s.Problem(err), "Redis at redis://h:1 rejected the request: "+c.text+". "+c.lacks+remedy)
			require.True(t, Denied(err))
			require.Equal(t, c.text, Reason(err))
			require.Equal(t, c.lacks+remedy, Remedy(err))
			require.Equal(t, "The user lacks +hset +hget. "+remedy, Remedy(err, "+hset", "+hget"))
		}
	}
	require.False(t, Denied(redis.Error("WRONGTYPE Operation against a key")))
	require.False(t, Denied(io.EOF))
	require.False(t, Denied(nil))
	require.Empty(t, Remedy(io.EOF))
}

func TestNoFormatPrintsPassword(t *testing.T) {
	t.Parallel()
	set := Settings{Address: "redis://u:sesame@h:1", User: "open", Password: "sesame"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "redis://h:1", fmt.Sprintf(format, set))
		require.Equal(t, "redis://h:1", fmt.Sprintf(format, server(t, set)))
	}
}

func TestFlagCredentialsOverrideAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set  Settings
		want string
	}{
		{Settings{Address: "redis://h"}, "redis://h:6379"},
		{Settings{Address: "redis://u:p@h/2"}, "redis://u:p@h:6379/2"},
		{Settings{Address: "redis://u:p@h", User: "v"}, "redis://v:p@h:6379"},
		{Settings{Address: "redis://u:p@h", Password: "q"}, "redis://u:q@h:6379"},
		{Settings{Address: "redis://h", User: "v", Password: "a/b@c:%"}, "redis://v:a%2Fb%40c%3A%25@h:6379"},
		{Settings{Address: "redis://h", Password: "q"}, "redis://:q@h:6379"},
		{Settings{Address: "unix:///run/r.sock?db=1", User: "v", Password: "q"}, "unix://v:q@/run/r.sock?db=1"},
	} {
		require.Equal(t, c.want, server(t, c.set).at.Full())
	}
	_, err := New(Settings{Address: "redis://h", User: "v"})
	require.ErrorContains(t, err, "--user needs a password")
}

func TestReplicasUseMasterSettings(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis://u:p@h:1/2": "redis://u:p@r:9/2", "rediss://h": "rediss://r:9", "unix://u:p@/run/r.sock?db=1": "redis://u:p@r:9/1",
	} {
		require.Equal(t, want, at(t, address).node("r:9").at.Full())
	}
	s := server(t, Settings{Address: "redis://h", TLS: TLS{ServerName: "n"}})
	require.Same(t, s.tls, s.node("r:9").tls)
}

func TestDeploymentAddressesAcceptUsersAndTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set         Settings
		shown, full string
	}{
		{Settings{Address: "redis-cluster://a,b:7"}, "redis-cluster://a:6379,b:7", "redis-cluster://a:6379,b:7"},
		{
			Settings{Address: "redis-cluster://u:p@a", Password: "sesame"}, "redis-cluster://a:6379", "redis-cluster://u:sesame@a:6379",
		},
		{
			Settings{Address: "redis-sentinel://a/m/2?sentinel_password=x", User: "v", Password: "sesame", TLS: TLS{Insecure: true}},
			"rediss-sentinel://a:26379/m/2", "rediss-sentinel://v:sesame@a:26379/m/2?sentinel_password=x",
		},
	} {
		s := server(t, c.set)
		require.Equal(t, c.shown, s.String())
		require.Equal(t, c.full, s.at.Full())
		require.Equal(t, c.set.TLS != (TLS{}), s.tls != nil)
	}
	s := at(t, "rediss-sentinel://u:p%40@a/m/2")
	require.Equal(t, "u", s.User())
	require.Equal(t, "rediss://u:p%40@h:1/2", s.node("h:1").at.Full())
	require.Equal(t, "h:1", s.node("h:1").Place())
	require.Equal(t, "rediss-sentinel://a:26379/m/2", s.Place())
	require.False(t, s.IsCluster())
	require.True(t, HasPassword(s.at.Full()))
	sentinels := "redis-sentinel://a/m?sentinel_password=x"
	require.False(t, HasPassword(sentinels), "REDIS_PASSWORD is that of the servers")
	require.True(t, Shows(sentinels, true))
	require.False(t, Shows("redis-cluster://u@a", false))
	require.True(t, Shows("redis://sesame@a", false))
	require.False(t, Shows("redis://u@a", true))
	for _, bad := range []string{"redis-sentinel://u:sesame@a", "redis-cluster://u:sesame@a/3", "redis-cluster://u:ses/ame@a"} {
		_, err := New(Settings{Address: bad})
		require.ErrorContains(t, err, "--redis or REDIS_URL: ")
		require.NotContains(t, err.Error(), "ame@")
	}
	_, err := New(Settings{Address: "redis-cluster://a", User: "v"})
	require.ErrorContains(t, err, "--user needs a password")
}

func TestUnreachableDeploymentReportsReason(t *testing.T) {
	t.Parallel()
	for address, says := range map[string]string{
		"redis-cluster://:sesame@127.0.0.1:1,127.0.0.1:2": "cannot reach Redis at redis-cluster://127.0.0.1:1,127.0.0.1:2: connection refused. List cluster nodes",
		"redis-sentinel://:sesame@127.0.0.1:1/m":          "cannot reach Redis at redis-sentinel://127.0.0.1:1/m: connection refused. List the Sentinels",
	} {
		s := at(t, address)
		for what, err := range map[string]error{
			"Dial":    second(s.Dial(t.Context())),
			"Masters": second(s.Masters(t.Context())),
			"Open":    second(s.Open(t.Context())),
			"New":     second(s.New(t.Context())),
		} {
			require.ErrorContains(t, err, says, what)
			require.NotContains(t, err.Error(), "sesame")
		}
	}
	srv, err := embedded.Start()
	require.NoError(t, err)
	defer srv.Close()
	s := at(t, "redis-sentinel://"+at(t, srv.URL()).Place()+"/m")
	_, err = s.Masters(t.Context())
	require.ErrorContains(t, err, "rejected the request: ERR unknown command")
	require.ErrorContains(t, err, "It is not a Sentinel")
	require.ErrorContains(t, s.Problem(redis.Error("MOVED 7 h:1")), "use redis-cluster://")
	require.ErrorContains(t, s.Problem(redis.Error("ERR No such master with that name")), "use the master's name that the Sentinels know")
	require.ErrorContains(t, s.Problem(redis.Error("ERR This instance has cluster support disabled")), "use redis://")
}

func second[T any](_ T, err error) error { return err }

func TestAnyTLSFlagEncrypts(t *testing.T) {
	t.Parallel()
	for _, set := range []TLS{{ServerName: "n"}, {Insecure: true}} {
		s := server(t, Settings{Address: "redis://h/1", TLS: set})
		require.Equal(t, "rediss://h:6379/1", s.String())
		require.Equal(t, set.ServerName, s.tls.ServerName)
		require.Equal(t, set.Insecure, s.tls.InsecureSkipVerify)
	}
	require.Nil(t, at(t, "redis://h").tls)
	_, err := New(Settings{Address: "unix:///run/r.sock", TLS: TLS{Insecure: true}})
	require.ErrorContains(t, err, "a unix socket does not use TLS")
}

func TestUnusableTLSFilesAreNamed(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct {
		set  TLS
		says string
	}{
		{TLS{CA: "/no/such/ca"}, "--tls-ca: open /no/such/ca: no such file"},
		{TLS{CA: empty}, "--tls-ca: " + empty + " does not contain a PEM certificate"},
		{TLS{Cert: empty}, "--tls-cert and --tls-key must be set together"},
		{TLS{Key: empty}, "--tls-cert and --tls-key must be set together"},
		{TLS{Cert: empty, Key: empty}, "--tls-cert and --tls-key: "},
	} {
		_, err := New(Settings{Address: "redis://h", TLS: c.set})
		require.ErrorContains(t, err, c.says)
	}
}

func TestReasonIsInnermostCause(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"no such host": fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "h"}), "timed out": fmt.Errorf("x: %w", context.DeadlineExceeded),
		"a; b": errors.Join(errors.New("a"), errors.New("b")),
	} {
		require.Equal(t, want, Reason(err))
	}
	require.Equal(t, "timed out", Reason(os.ErrDeadlineExceeded))
}

func TestReachReportsServerOrReason(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start()
	require.NoError(t, err)
	defer srv.Close()
	c, err := at(t, srv.URL()).Dial(t.Context())
	require.NoError(t, err)
	_, err = c.Do("PING")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	client, err := at(t, srv.URL()).Open(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Close())
	client, err = at(t, srv.URL()).New(t.Context())
	require.NoError(t, err)
	_, err = engine.EngineOf(client).Clock.Offset(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Close())

	_, err = at(t, "unix:///no/such/socket").Dial(t.Context())
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = New(Settings{Address: "unix:///no/such/socket?db=x"})
	require.ErrorContains(t, err, "the database must be a number")
	_, err = at(t, "unix:///no/such/socket").Open(t.Context())
	require.ErrorContains(t, err, "cannot reach Redis at unix:///no/such/socket: no such file or directory. Start one")
	_, err = New(Settings{Address: "elsewhere"})
	require.EqualError(t, err, "--redis or REDIS_URL: invalid address: the scheme is missing: write redis://host:port, rediss://host:port for TLS, or unix:///path")
}

// eventually calls problem until its error contains says, because a probe may time out on a machine
// that stalls.
func eventually(t *testing.T, says string, problem func() error) (err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		err = problem()
		return err != nil && strings.Contains(err.Error(), says)
	}, time.Minute, 10*time.Millisecond, says)
	return err
}

// The kernel accepts connections even if the process has been stopped.
func TestSilentServerIsNotReportedAbsent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	addr := l.Addr().String()
	for _, late := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		for address, says := range map[string]string{
			"redis://" + addr:                   "it is frozen or overloaded",
			"rediss://" + addr:                  "this port does not use TLS",
			"redis-cluster://h.invalid," + addr: "it is frozen or overloaded",
		} {
			t.Run(address, func(t *testing.T) {
				t.Parallel()
				said := eventually(t, " accepts connections, but does not answer in time: "+says, func() error {
					return at(t, address).Problem(fmt.Errorf("open: %w", late))
				})
				require.ErrorIs(t, said, late)
			})
		}
	}
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer func() { _ = socket.Close() }()
	eventually(t, "accepts connections", func() error { return at(t, "unix://"+path).Problem(os.ErrDeadlineExceeded) })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	said := at(t, "redis://"+closed.Addr().String()).Problem(os.ErrDeadlineExceeded)
	require.ErrorContains(t, said, "cannot reach Redis at redis://"+closed.Addr().String()+": timed out. It does not accept connections: check the host and port")
}

func TestOnlyReplicaRoleNamesMaster(t *testing.T) {
	t.Parallel()
	require.Equal(t, "h:6379", masterOf([]any{[]byte("slave"), []byte("h"), int64(6379), []byte("connected"), int64(1)}, nil))
	for _, role := range []any{[]any{[]byte("master"), int64(1), []any{}}, []any{[]byte("sentinel"), []any{}}, redis.Error("NOPERM")} {
		require.Empty(t, masterOf(role, nil))
	}
	require.Empty(t, masterOf(nil, redis.Error("NOPERM")))
}
