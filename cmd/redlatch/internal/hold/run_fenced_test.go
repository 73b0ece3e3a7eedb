//go:build unix

package hold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestRunFencedTellsTheCommandItsToken(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, flags := range [][]string{{"--fenced"}, {"--fenced", "--fair"}} {
		name := redistest.Key(t)
		for _, token := range []string{"1", "2"} {
			args := append(append([]string{"run"}, flags...), name, "--", "sh", "-c", `echo "$REDLATCH_TOKEN"`)
			got := program.Finish(t, s.URL(), args...)
			require.Equal(t, program.Outcome{Code: 0, Stdout: token + "\n", Stderr: ""}, got)
		}
		s.Do(t, "SET", codec.TokenKey(name), "none")
		program.Fails(t, s.URL(), 125, "token counter cannot be raised", "run", "--fenced", name, "--", "echo", "never")
	}
}

func TestRunFencedKeepsTheLockForAtLeastSoLong(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	got := program.Finish(t, s.URL(), "run", "--fenced", "--at-least", "1h", name, "--", "true")
	require.Equal(t, program.Outcome{}, got)
	require.Positive(t, ttl(t, s, name))
}
