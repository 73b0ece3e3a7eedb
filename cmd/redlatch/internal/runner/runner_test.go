package runner

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFindDistinguishesMissingFromUnusable(t *testing.T) {
	t.Parallel()
	var failed *cli.ExitError
	_, err := Find("no-such-command-anywhere")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, cli.CodeNotFound, failed.Code)
	_, err = Find(t.TempDir() + "/missing")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, cli.CodeNotFound, failed.Code)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Find("")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, cli.CodeNotFound, failed.Code)
}
