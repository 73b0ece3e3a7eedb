package redlatch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// tlsServer starts a server that speaks TLS on a second port, with a certificate of
// a, and with more arguments.
func tlsServer(t *testing.T, a *authority, change func(c *x509.Certificate), args ...string) (srv *redistest.Server, address string) {
	t.Helper()
	speak, address := speakingTLS(t, a, change)
	return redistest.Start(t, speak, redistest.WithArgs(args...)), address
}

// speakingTLS lets a server speak TLS on a second port, at address.
func speakingTLS(t *testing.T, a *authority, change func(c *x509.Certificate)) (speak redistest.Option, address string) {
	t.Helper()
	cert, key := a.issue(t, change)
	port := strconv.Itoa(redistest.UnusedPort(t))
	return redistest.WithArgs("--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file), net.JoinHostPort("127.0.0.1", port)
}

// trusting is a TLS configuration that trusts a, and shows certificates if there are
// any.
func (a *authority) trusting(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: a.pool, Certificates: certificates, MinVersion: tls.VersionTLS12}
}

func TestOpenSpeaksTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	srv, address := tlsServer(t, a, nil)
	c := dialled(t, "rediss://"+address+"/4", redlatch.WithTLSConfig(a.trusting()))
	requireWorks(t, srv, c)
	_, err := redlatch.Open(t.Context(), "redis://"+address)
	require.Error(t, err, "plain text to a TLS port")
}

func TestOpenShowsItsCertificateToServersThatWantOne(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	srv, address := tlsServer(t, a, nil, "--tls-auth-clients", "yes")
	requireWorks(t, srv, dialled(t, "rediss://"+address, redlatch.WithTLSConfig(a.trusting(a.pair(t)...))))
}

// TLS settings that would be ignored show that the program expects TLS where there
// is none.
func TestTLSSettingsWithoutTLSAreRefused(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithUnixSocket())
	for _, address := range []string{srv.URL(), "unix://" + srv.Socket()} {
		_, err := redlatch.Open(t.Context(), address, redlatch.WithTLSConfig(newAuthority(t).trusting()))
		require.ErrorContains(t, err, "WithTLSConfig needs an address with the scheme rediss")
		requireWorks(t, srv, dialled(t, address, redlatch.WithTLSConfig(nil)))
	}
}

// Whatever does not fit: one error that says what it is, and at once.
func TestTLSThatDoesNotFitIsOneClearError(t *testing.T) {
	t.Parallel()
	a, foreign := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		server []string
		cert   func(c *x509.Certificate)
		client *tls.Config
		want   string
	}{
		"an authority that only the server knows": {nil, nil, foreign.trusting(), "x509: certificate signed by unknown authority"},
		"the system's authorities":                {nil, nil, nil, "x509: certificate signed by unknown authority"},
		"another address": {nil, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} },
			a.trusting(), "x509: certificate is valid for 127.0.0.2, not 127.0.0.1"},
		"another name": {nil, nil, &tls.Config{RootCAs: a.pool, ServerName: "redis.example", MinVersion: tls.VersionTLS12},
			"redis.example"},
		"a certificate that has expired": {nil, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) },
			a.trusting(), "x509: certificate has expired or is not yet valid"},
		"no certificate of the client's": {[]string{"--tls-auth-clients", "yes"}, nil, a.trusting(), "certificate required"},
		"a client's certificate by an unknown authority": {[]string{"--tls-auth-clients", "yes"}, nil,
			a.trusting(foreign.pair(t)...), "unknown certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, address := tlsServer(t, a, c.cert, c.server...)
			for _, user := range []string{"", ":" + secret + "@"} {
				began := time.Now()
				_, err := redlatch.Open(t.Context(), "rediss://"+user+address, redlatch.WithTLSConfig(c.client), redlatch.WithDialTimeout(soon))
				require.ErrorIs(t, err, redlatch.ErrNotSent)
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), secret)
				require.Less(t, time.Since(began), soon/2, "it did not wait for anything")
			}
		})
	}
}

// A server that refuses every handshake is tried now and then, once for all
// waiting callers.
func TestTLSThatDoesNotFitIsTriedNowAndThen(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	srv, address := tlsServer(t, a, nil)
	var dials atomic.Int64
	config := newAuthority(t).trusting()
	c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
		dials.Add(1)
		return redis.DialURLContext(ctx, "rediss://"+address, redis.DialTLSConfig(config))
	})
	require.NoError(t, err)
	closedWith(t, c)
	failed := make(chan error, 20)
	began := time.Now()
	for range cap(failed) {
		go func() {
			_, err := rlock.New(c, redistest.Key(t)).Lock(t.Context())
			failed <- err
		}()
	}
	for range cap(failed) {
		err := <-failed
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorContains(t, err, "unknown authority")
	}
	require.Less(t, dials.Load(), int64(10+2*time.Since(began)/time.Second), "the pauses grow to a second")
	require.Eventually(t, func() bool { return srv.Clients(t) == 0 }, soon, 5*time.Millisecond)
}

func TestTLSHandshakeIsBoundedByTheDialTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	for _, scheme := range []string{"redis://", "rediss://"} {
		began := time.Now()
		_, err = redlatch.Open(t.Context(), scheme+silent.Addr().String(),
			redlatch.WithDialTimeout(200*time.Millisecond), redlatch.WithCommandTimeout(200*time.Millisecond))
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.Less(t, time.Since(began), 5*time.Second)
	}
}
