package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestDoctorNamesACommandThatTheServerLacks(t *testing.T) {
	t.Parallel()
	_, url := redistest.StartWithout(t, []string{"wait", "role"})
	found := examined(t, url, "")
	require.Equal(t, Finding{
		Check: "replicas rights", Level: Warning, Found: "the server has no wait, which waits for replicas need",
		Advice: "WithReplicaSync cannot be used here.",
	}, found["replicas rights"])
	require.Equal(t, Warning, found["listeners rights"].Level)
	require.Equal(t, Warning, found["counting"].Level, found["counting"].Found)
	require.Equal(t, Error, examined(t, url, "", "replicas")["replicas rights"].Level)
}
