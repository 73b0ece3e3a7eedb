package mux_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// What a user may not do is logged when it would have been of use, once, and which
// right it is.
func TestRightThatAFenceMissesIsNamedOnce(t *testing.T) {
	t.Parallel()
	const noperm = "-NOPERM this user has no permissions\r\n"
	for right, c := range map[string]struct {
		refused string // the subcommand of CLIENT
		kills   bool
	}{
		"+client|id":   {"ID", false},
		"+client|info": {"INFO", true},
		"+client|kill": {"KILL", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			p.on(func(_ int, args []string) (string, bool) {
				switch {
				case args[0] == "BREAK":
					return hangUp, true
				case args[0] == "CLIENT" && args[1] == c.refused:
					return noperm, true
				case args[0] == "CLIENT" && args[1] == "KILL":
					return ":1\r\n", true
				}
				return "", false
			})
			log, logger := redistest.NewJournal()
			cfg := p.config()
			cfg.Logger = logger
			m := open(t, cfg)
			require.NoError(t, mux.Ping(t.Context(), m))
			require.Empty(t, log.Lines("right="), "nothing is in doubt yet")
			for range 3 {
				require.NoError(t, do(t, m, command("ECHO", "x")).err)
				broken := command("BREAK")
				require.ErrorIs(t, do(t, m, broken).err, transport.ErrUncertain)
				assert.Equal(t, c.kills, m.Fence(t.Context(), broken) == nil)
			}
			require.Len(t, log.Lines("level=WARN", "right="), 3+1, "three broken connections, and this")
			require.Len(t, log.Lines("right="+right), 1)
		})
	}
}
