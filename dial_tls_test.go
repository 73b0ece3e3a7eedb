package redlatch_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// tlsServer starts a server with the given arguments. It speaks TLS on a second port, with a
// certificate from a.
func tlsServer(t *testing.T, a *authority, change func(c *x509.Certificate), args ...string) (srv *redistest.Server, address string) {
	t.Helper()
	speak, address := speakingTLS(t, a, change)
	return redistest.Start(t, speak, redistest.WithArgs(args...)), address
}

// speakingTLS enables TLS on a server's second port, at address.
func speakingTLS(t *testing.T, a *authority, change func(c *x509.Certificate)) (speak redistest.Option, address string) {
	t.Helper()
	cert, key := a.issue(t, change)
	port := strconv.Itoa(redistest.UnusedPort(t))
	return redistest.WithArgs("--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file), net.JoinHostPort("127.0.0.1", port)
}

// trusting returns a TLS configuration that trusts a and presents the given certificates.
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

func TestOpenPresentsClientCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	srv, address := tlsServer(t, a, nil, "--tls-auth-clients", "yes")
	requireWorks(t, srv, dialled(t, "rediss://"+address, redlatch.WithTLSConfig(a.trusting(a.pair(t)...))))
}

// A mismatch is reported immediately, in one error.
func TestTLSMismatchReturnsClearError(t *testing.T) {
	t.Parallel()
	a, foreign := newAuthority(t), newAuthority(t)
	_, usual := tlsServer(t, a, nil)
	_, strict := tlsServer(t, a, nil, "--tls-auth-clients", "yes")
	_, elsewhere := tlsServer(t, a, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} })
	_, expired := tlsServer(t, a, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	for name, c := range map[string]struct {
		address string
		client  *tls.Config
		want    string
	}{
		"an authority unknown to the client": {usual, foreign.trusting(), "x509: certificate signed by unknown authority"},
		"the system's authorities":           {usual, nil, "x509: certificate signed by unknown authority"},
		"another address":                    {elsewhere, a.trusting(), "x509: certificate is valid for 127.0.0.2, not 127.0.0.1"},
		"another name": {usual, &tls.Config{RootCAs: a.pool, ServerName: "redis.example", MinVersion: tls.VersionTLS12},
			"redis.example"},
		"an expired certificate":                       {expired, a.trusting(), "x509: certificate has expired or is not yet valid"},
		"no client certificate":                        {strict, a.trusting(), "certificate required"},
		"a client certificate of an unknown authority": {strict, a.trusting(foreign.pair(t)...), "unknown certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, user := range []string{"", ":" + secret + "@"} {
				_, err := redlatch.Open(t.Context(), "rediss://"+user+c.address, redlatch.WithTLSConfig(c.client), redlatch.WithDialTimeout(time.Hour))
				require.ErrorIs(t, err, redlatch.ErrNotSent)
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
}

func TestDialTimeoutLimitsTLSHandshake(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	for _, scheme := range []string{"redis://", "rediss://"} {
		_, err = redlatch.Open(t.Context(), scheme+silent.Addr().String(),
			redlatch.WithDialTimeout(200*time.Millisecond), redlatch.WithCommandTimeout(time.Hour))
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorContains(t, err, "no connection within 200ms")
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pool *x509.CertPool
	file string // its own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{CommonName: rand.Text()}, // identifies it
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.file, _, a.key = a.write(t, a.cert)
	raw, err := os.ReadFile(a.file)
	require.NoError(t, err)
	require.True(t, a.pool.AppendCertsFromPEM(raw))
	return a
}

// issue writes a certificate for 127.0.0.1 and its key to files. If change is not nil, it
// modifies the certificate.
func (a *authority) issue(t *testing.T, change func(c *x509.Certificate)) (certFile, keyFile string) {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(c)
	}
	certFile, keyFile, _ = a.write(t, c)
	return certFile, keyFile
}

// pair returns the certificate that a client presents.
func (a *authority) pair(t *testing.T) []tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(t, nil))
	require.NoError(t, err)
	return []tls.Certificate{pair}
}

// write signs c, with c's own key if the authority has none.
func (a *authority) write(t *testing.T, c *x509.Certificate) (certFile, keyFile string, key crypto.Signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), signer)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile, key
}
