package connect

import (
	"io"
	"os"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestHealthIsJudgedByTheProbe(t *testing.T) {
	t.Parallel()
	for _, late := range []health{silent, delaying} {
		require.Equal(t, answering, healthBy(nil, late))
		require.Equal(t, answering, healthBy(redis.Error("NOPERM no right to EVAL"), late))
		require.Equal(t, late, healthBy(os.ErrDeadlineExceeded, late))
		require.Equal(t, unclear, healthBy(io.EOF, late))
	}
}
