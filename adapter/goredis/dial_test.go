package goredis

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// go-redis panics when it is given neither a connection nor an error.
func TestADialWithoutAWaiterIsAnError(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { assert.NoError(t, far.Close()) }()
	d := &detacher{reach: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	d.hangUp()
	conn, err := d.dial(t.Context(), "tcp", "127.0.0.1:6379")
	require.ErrorIs(t, err, errTooLate)
	require.Nil(t, conn)
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
}
