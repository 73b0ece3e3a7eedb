package wire_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/wire"
)

// deadlines counts the deadlines that are set on it, and knows the last ones.
type deadlines struct {
	net.Conn        // never used
	reads, writes   int
	readBy, wroteBy time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.reads++
	d.readBy = t
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.writes++
	d.wroteBy = t
	return nil
}

func (d *deadlines) SetDeadline(t time.Time) error {
	d.readBy, d.wroteBy = t, t
	return nil
}

func TestDeadlinesAreMovedWhenThatMatters(t *testing.T) {
	under := &deadlines{}
	const bound = 4 * time.Second
	conn := wire.Lazy(under, bound)
	start := time.Now()
	var asked time.Time
	for passed := time.Duration(0); passed <= 3*time.Second; passed += time.Millisecond {
		asked = start.Add(passed + bound)
		require.NoError(t, conn.SetWriteDeadline(asked))
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		require.Less(t, asked.Sub(under.wroteBy), bound/4, "a write has three quarters of its time")
	}
	require.Equal(t, 4, under.writes)
	require.Equal(t, 1, under.reads, "what is not known is set")

	require.NoError(t, conn.SetReadDeadline(start))
	require.NoError(t, conn.SetReadDeadline(start.Add(time.Millisecond)))
	require.Equal(t, start.Add(time.Millisecond), under.readBy, "reads end on time")
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	require.True(t, under.readBy.IsZero(), "and are freed of it")

	require.NoError(t, conn.SetWriteDeadline(asked.Add(-time.Millisecond)))
	require.Equal(t, asked.Add(-time.Millisecond), under.wroteBy, "an earlier one is set")
	require.NoError(t, conn.SetWriteDeadline(time.Time{}))
	require.True(t, under.wroteBy.IsZero(), "none is, too")

	require.NoError(t, conn.SetDeadline(start))
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	require.True(t, under.readBy.IsZero(), "what both were set to is not forgotten")
	require.NoError(t, conn.SetWriteDeadline(start.Add(bound)))
	require.Equal(t, start.Add(bound), under.wroteBy)
}
