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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		Subject: pkix.Name{CommonName: rand.Text()}, // by which servers find it
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.file, _, a.key = a.write(t, a.cert)
	raw, err := os.ReadFile(a.file)
	require.NoError(t, err)
	require.True(t, a.pool.AppendCertsFromPEM(raw))
	return a
}

// issue writes a certificate for 127.0.0.1 and its key to files. Change, if not nil,
// makes it another one.
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

// pair is what a client shows to the server.
func (a *authority) pair(t *testing.T) []tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(t, nil))
	require.NoError(t, err)
	return []tls.Certificate{pair}
}

// write signs c, with its own key if there is no other yet.
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
