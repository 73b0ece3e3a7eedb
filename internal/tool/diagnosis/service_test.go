package diagnosis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// What is predicted of a service is what doctor finds of an imitation of it.
func TestDoctorPredictsWhatAServiceLacks(t *testing.T) {
	t.Parallel()
	for _, service := range Services() {
		t.Run(service.Name, func(t *testing.T) {
			t.Parallel()
			_, url := redistest.StartWithout(t, service.Without)
			for _, needs := range [][]string{nil, {"fair", "doubt", "replicas"}, {"listeners", "viewer"}, {"onlooker"}, {"operator"}} {
				predicted := service.Predict(needs)
				require.Equal(t, "server", predicted[0].Check)
				require.Contains(t, predicted[0].Found, service.Source)
				found := examined(t, url, "", needs...)
				told := map[string]bool{"server": true}
				for _, f := range predicted[1:] {
					told[f.Check] = true
					assert.Equal(t, f.Level, found[f.Check].Level, "need %s: %s predicted, but %s", needs, f.Found, found[f.Check].Found)
				}
				for check, f := range found {
					if strings.HasSuffix(check, "rights") || check == "counting" || check == "lock" || check == "fair lock" {
						assert.True(t, f.Level == OK || told[check], "%s was not predicted: %s", check, f.Found)
					}
				}
			}
		})
	}
}

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

func TestTheManualListsTheServices(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "topologies.md"))
	require.NoError(t, err)
	for _, s := range Services() {
		without := "`" + strings.ReplaceAll(strings.Join(s.Without, "`, `"), "|", "\\|") + "`"
		require.Contains(t, string(manual), "| `"+s.Name+"` | "+s.Title+" | "+without+" |\n")
		require.Contains(t, string(manual), "The lists were read on "+s.Read)
	}
}
