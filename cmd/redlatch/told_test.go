//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Whoever goes on until told to end says by which signal, as shells do.
func TestCommandsThatAreToldToEndSayByWhichSignal(t *testing.T) {
	t.Parallel()
	for what, begin := range map[string]func(t *testing.T) *program{
		"list --watch": func(t *testing.T) *program {
			t.Helper()
			return begun(start(t, redistest.Shared(t).URL(), "list", "--watch"))
		},
		"watch": func(t *testing.T) *program {
			t.Helper()
			return begun(start(t, redistest.Shared(t).URL(), "watch", redistest.Key(t)))
		},
		"watch a pattern": func(t *testing.T) *program {
			t.Helper()
			s := redistest.Shared(t)
			name := heldBy(t, s, native, time.Hour)
			return begun(start(t, s.URL(), "watch", name+"*"))
		},
		"serve": func(t *testing.T) *program {
			t.Helper()
			return begun(start(t, nobody(t), "serve", "--addr", "127.0.0.1:0"))
		},
		"bench": func(t *testing.T) *program {
			t.Helper()
			s := redistest.Start(t)
			p := start(t, s.URL(), "bench", "--duration", "1m")
			require.Eventually(t, func() bool { return s.Do(t, "DBSIZE") != int64(0) }, soon, pollEvery)
			return p
		},
		"demo": func(t *testing.T) *program {
			t.Helper()
			p, _ := busyDemo(t, redistest.Start(t))
			return p
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for sig, code := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
				p := begin(t)
				require.NoError(t, p.cmd.Process.Signal(sig))
				require.Equal(t, code, p.outcome(2*soon).code, "%v", sig)
			}
		})
	}
}

// begun returns p when it has printed a line.
func begun(p *program) *program {
	p.t.Helper()
	p.line()
	return p
}

func TestHelpSaysWithWhichCodeASignalEnds(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"list", "watch", "bench", "demo", "serve"} {
		require.Contains(t, commands(t)[path].Long, "128+n", path)
		require.Contains(t, commands(t)[path].Long, "143 SIGTERM", path)
	}
	require.Contains(t, cli.NewRoot(constructors...).Long, "143 for SIGTERM")
}
