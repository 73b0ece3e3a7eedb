package force

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestUnlockPromptsOnTerminalWithoutYes(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, c := range []struct {
		flag, typed string
		code        int
		asks        bool
	}{
		{"--yes=false", "n\n", 2, true},
		{"--yes=false", "\n", 2, true},
		{"--yes=false", "y\n", 0, true},
		{"--yes", "", 0, false},
	} {
		name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
		terminal, keys := program.OpenTerminal(t)
		_, err := keys.WriteString(c.typed)
		require.NoError(t, err)
		exe, err := os.Executable()
		require.NoError(t, err)
		var out, said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), exe, "unlock", "--force", "--even-if-alive", c.flag, name)
		cmd.Env = append(os.Environ(), program.Env+"=1", "GORACE=atexit_sleep_ms=0", "REDIS_URL="+s.URL())
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &out, &said
		err = cmd.Run()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%v: %s", err, said.String())
		require.Equal(t, c.code != 0, program.Exists(t, s, name))
		if !c.asks {
			require.NotContains(t, said.String(), "[y/N]")
			require.Contains(t, out.String(), program.RedissonOwner)
			continue
		}
		require.Contains(t, said.String(), "  server redis://")
		require.Contains(t, said.String(), "Release lock \""+name+"\" of this holder? [y/N] ")
		require.Contains(t, said.String(), program.RedissonOwner)
		require.NotContains(t, out.String(), program.RedissonOwner, "it is reported twice")
	}
}
