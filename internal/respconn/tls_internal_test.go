package respconn

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWriteReturnsServersAlert(t *testing.T) {
	t.Parallel()
	ts := httptest.NewTLSServer(nil) // for its certificate
	defer ts.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	gone := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = tls.Server(conn, &tls.Config{
				Certificates: ts.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
			}).HandshakeContext(t.Context())
			_ = conn.Close()
		}
		gone <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = raw.Close() }() // broken anyway
	c := &tlsConn{Conn: tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})}
	require.NoError(t, c.HandshakeContext(t.Context()), "as far as the client can tell")
	require.ErrorContains(t, <-gone, "didn't provide a certificate")
	for limit := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(limit); {
		_, err = c.Write([]byte("PING\r\n"))
	}
	require.ErrorContains(t, err, "remote error: tls: certificate required")
}
