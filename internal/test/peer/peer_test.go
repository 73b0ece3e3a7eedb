package peer

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFindReportsMissingPrerequisite(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("java"); err != nil {
		_, err := find(t.TempDir(), "4.3.1")
		require.ErrorIs(t, err, ErrMissing)
		require.ErrorContains(t, err, "no java")
		return
	}
	_, err := find(t.TempDir(), "4.3.1")
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "not built; run scripts/compat.sh 4.3.1")
}

func TestPeerAnswersAndExits(t *testing.T) {
	testlevel.All(t, "a Java machine")
	t.Parallel()
	p := Start(t, Find(t, filepath.Join("..", "..", ".."), "4.3.1", "NO PEER"))

	_, err := p.Go(Command{"op": "no such thing"}).Wait(time.Minute)
	var thrown *Exception
	require.ErrorAs(t, err, &thrown)
	require.Equal(t, "IllegalArgumentException", thrown.Class)

	reply, err := p.Go(Command{"op": "thread", "thread": "t1"}).Wait(time.Minute)
	require.NoError(t, err)
	var id int64
	require.NoError(t, reply.Into(&id))
	require.Positive(t, id)
	require.False(t, reply.Ended().Before(reply.Began()))

	p.Halt()
	_, err = p.Go(Command{"op": "thread", "thread": "t1"}).Wait(time.Minute)
	require.ErrorIs(t, err, ErrGone)
}

func TestTailKeepsEnd(t *testing.T) {
	t.Parallel()
	var words tail
	for range tailLength {
		_, err := words.Write([]byte("ab"))
		require.NoError(t, err)
	}
	_, err := words.Write([]byte("the end"))
	require.NoError(t, err)
	require.Len(t, words.String(), tailLength)
	require.Contains(t, words.String(), "abthe end")
}
