package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The README has two commands that lead to a page with the locks of a live Redisson and of
// Redlatch: one installs the command line, the other one serves the page. The first is done with
// this checkout, and the second at a free port.
func TestTheREADMELeadsToThePageInTwoCommands(t *testing.T) {
	t.Parallel()
	in := browser(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	const install, show = "go install github.com/redlatch/redlatch/cmd/redlatch@latest", "redlatch ui"
	require.Contains(t, string(readme), "\n    "+install+"\n")
	require.Contains(t, string(readme), "\n| `"+show+"` |")

	s := redistest.Start(t)
	_, err = javaClient(t, s)(peer.Command{"op": "lock", "kind": "plain", "name": "nightly-report"}).Wait(atMost)
	require.NoError(t, err)
	hold, err := rlock.New(goClient(t, s, "orders@host-3"), "orders:42").Lock(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, hold.Unlock()) }()

	program := filepath.Join(t.TempDir(), "redlatch")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/redlatch")
	build.Dir = root
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	serves := exec.CommandContext(t.Context(), program, append(strings.Fields(show)[1:], "--addr", "127.0.0.1:0")...)
	serves.Env = append(os.Environ(), "REDIS_URL="+s.URL())
	out, err := serves.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serves.Start())
	defer func() {
		require.NoError(t, serves.Process.Signal(os.Interrupt))
		_ = serves.Wait() // 130
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	b := open(t, in)
	b.visit(t, strings.TrimSpace(address), 1280, "light")
	b.awaits(t, "2 locks")
	b.awaits(t, "nightly-report plain Redisson ")
	b.awaits(t, "orders:42 plain orders@host-3 (Redlatch ")
	keep(t, b, "walk")
	require.Empty(t, b.complained())
}
