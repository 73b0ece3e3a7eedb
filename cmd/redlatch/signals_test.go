//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A command that runs until a signal exits with the signal's code, as in shells.
func TestCommandsEndWithTheCodeOfTheirSignal(t *testing.T) {
	t.Parallel()
	for what, begin := range map[string]func(t *testing.T) *program.Process{
		"list --watch": func(t *testing.T) *program.Process {
			t.Helper()
			return begun(t, program.Start(t, redistest.Shared(t).URL(), "list", "--watch"))
		},
		"watch": func(t *testing.T) *program.Process {
			t.Helper()
			return begun(t, program.Start(t, redistest.Shared(t).URL(), "watch", redistest.Key(t)))
		},
		"watch a pattern": func(t *testing.T) *program.Process {
			t.Helper()
			s := redistest.Shared(t)
			name := program.HeldBy(t, s, program.RedlatchOwner, time.Hour)
			return begun(t, program.Start(t, s.URL(), "watch", name+"*"))
		},
		"serve": func(t *testing.T) *program.Process {
			t.Helper()
			return begun(t, program.Start(t, program.NoServer(t), "serve", "--addr", "127.0.0.1:0"))
		},
		"demo": func(t *testing.T) *program.Process {
			t.Helper()
			p, _ := program.BusyDemo(t, redistest.Start(t))
			return p
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for sig, code := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
				p := begin(t)
				require.NoError(t, p.Cmd.Process.Signal(sig))
				require.Equal(t, code, p.Outcome(2*program.Soon).Code, "%v", sig)
			}
		})
	}
}

// begun returns p when it has printed a line.
func begun(t *testing.T, p *program.Process) *program.Process {
	t.Helper()
	p.Line()
	return p
}

func TestHelpSaysWithWhichCodeASignalEnds(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"list", "watch", "demo", "serve"} {
		require.Contains(t, commands(t)[path].Long, "128+n", path)
		require.Contains(t, commands(t)[path].Long, "143 SIGTERM", path)
	}
	require.Contains(t, cli.NewRoot(constructors...).Long, "143 for SIGTERM")
}
