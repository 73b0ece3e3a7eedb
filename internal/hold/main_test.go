package hold_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// embeddedClient returns a client of an embedded server. Both are closed when the test ends.
func embeddedClient(t *testing.T) *redlatch.Client {
	t.Helper()
	srv, err := embedded.Start(embedded.WithInProcess())
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	client, err := redlatch.New(srv.Dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// clientOver returns a client that is closed when the test ends.
func clientOver(t *testing.T, tr transport.Transport, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.NewWithTransport(tr, append(opts, redlatch.WithLabel(""))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
