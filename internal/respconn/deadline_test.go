package respconn_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/respconn"
)

// deadlines counts the deadlines that are set on it, and knows the last ones.
type deadlines struct {
	net.Conn        // never used
	reads, writes   int
	readBy, writeBy time.Time
}

func (d *deadlines) Write(p []byte) (int, error) { return len(p), nil }

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.reads++
	d.readBy = t
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.writes++
	d.writeBy = t
	return nil
}

func TestEachWriteHasThreeQuartersOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &deadlines{}
		const bound = 4 * time.Second
		conn := respconn.Bounded(under, bound)
		for range 3001 {
			n, err := conn.Write([]byte("all"))
			require.NoError(t, err)
			require.Equal(t, 3, n)
			left := time.Until(under.writeBy)
			require.GreaterOrEqual(t, left, bound*3/4)
			require.LessOrEqual(t, left, bound)
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, 3, under.writes, "and no more deadlines are set than that takes")
		time.Sleep(time.Hour)
		_, err := conn.Write([]byte("late"))
		require.NoError(t, err)
		require.Equal(t, bound, time.Until(under.writeBy), "after a pause, too")
	})
}

func TestDeadlinesOfReadsAreSetWhenTheyChange(t *testing.T) {
	under := &deadlines{}
	conn := respconn.Bounded(under, time.Second)
	soon := time.Now().Add(time.Second)
	for range 3 {
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		require.Equal(t, 1, under.reads, "there may have been one")
	}
	for i := range 3 {
		require.NoError(t, conn.SetReadDeadline(soon.Add(time.Duration(i))))
		require.Equal(t, soon.Add(time.Duration(i)), under.readBy)
	}
	for range 3 {
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		require.True(t, under.readBy.IsZero())
	}
	require.Equal(t, 5, under.reads)
}

// A dial function may have left a deadline of its handshake on the connection, which the
// client library takes off with the first reply that it waits for without one.
func TestADeadlineOfReadsThatWasThereIsTakenOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		require.NoError(t, ours.SetReadDeadline(time.Now().Add(time.Second)))
		conn := respconn.NewConn(ours, time.Second)
		defer func() { require.NoError(t, theirs.Close()) }()
		time.AfterFunc(time.Minute, func() { _, _ = theirs.Write([]byte("+late\r\n")) })
		reply, _, err := respconn.Receive(conn, 0)
		require.NoError(t, err)
		require.Equal(t, "late", reply)
		require.NoError(t, conn.Close())
	})
}
