package redlatch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
)

// selfSigned writes a certificate for 127.0.0.1 and its key to files.
func selfSigned(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return certFile, keyFile, pool
}

// tlsServer starts a server that speaks TLS on a second port.
func tlsServer(t *testing.T) (srv *redistest.Server, address string, pool *x509.CertPool) {
	t.Helper()
	cert, key, pool := selfSigned(t)
	port := strconv.Itoa(unusedPort(t))
	srv = redistest.Start(t, redistest.WithArgs("--tls-port", port,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"))
	return srv, net.JoinHostPort("127.0.0.1", port), pool
}

// unusedPort is one that outgoing connections do not get.
func unusedPort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 12000 + mathrand.IntN(8000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "no port is free")
	return 0
}

func TestOpenSpeaksTLS(t *testing.T) {
	t.Parallel()
	srv, address, pool := tlsServer(t)
	c := dialled(t, "rediss://"+address+"/4",
		redlatch.WithTLSConfig(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	requireWorks(t, srv, c)

	// The certificate is for this address, and signed by nobody the system knows.
	for name, config := range map[string]*tls.Config{
		"system's roots": nil,
		"another host":   {RootCAs: pool, ServerName: "redis.example", MinVersion: tls.VersionTLS12},
	} {
		_, err := redlatch.Open(t.Context(), "rediss://"+address, redlatch.WithTLSConfig(config))
		require.ErrorIs(t, err, redlatch.ErrNotSent, name)
		require.ErrorContains(t, err, "x509: ", name)
	}
	_, err := redlatch.Open(t.Context(), "redis://"+address)
	require.Error(t, err, "plain text to a TLS port")
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
