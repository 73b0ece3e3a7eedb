package runner

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/tool/holding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGraceEndsWithinTheMargin(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{time.Millisecond, time.Second, 3 * time.Second, 30 * time.Second, time.Hour} {
		margin := holding.Margin(lease)
		require.LessOrEqual(t, margin, lease/10)
		require.LessOrEqual(t, margin, time.Second)
		require.Less(t, Grace(margin), margin)
		require.Greater(t, Grace(margin), margin/2)
	}
}

func TestFindDistinguishesMissingFromUnusable(t *testing.T) {
	t.Parallel()
	var failed *Error
	_, err := Find("no-such-command-anywhere")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, CodeNotFound, failed.Code)
	_, err = Find(t.TempDir() + "/missing")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, CodeNotFound, failed.Code)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Find("")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, CodeNotFound, failed.Code)
}
