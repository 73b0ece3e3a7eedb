package diagnosis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func TestMovesAreReadFromTheMastersOwnLine(t *testing.T) {
	t.Parallel()
	const nodes = "aa 10.0.0.1:7011@17011 myself,master - 0 0 1 connected 0-5460 [7->-bb] [9-<-cc]\n" +
		"bb 10.0.0.2:7012@17012,host master - 0 1 2 connected 5461-10922 [8->-cc]\ncc 10.0.0.3:7013@17013 master - 0 1 3 connected\n"
	require.Equal(t, []string{"slot 7 is being moved to 10.0.0.2:7012", "slot 9 is being moved here from 10.0.0.3:7013"}, movesIn(nodes))
	require.Empty(t, movesIn("garbled"))
	many := "aa h:1@2 myself,master - 0 0 1 connected" + strings.Repeat(" [7->-aa]", shownMoves+2)
	require.Equal(t, "and 2 more", movesIn(many)[shownMoves])
}

func examinedCluster(t *testing.T, c *redistest.Cluster) map[string]Finding {
	t.Helper()
	srv, err := connect.New(connect.Settings{Address: "redis-cluster://" + c.Nodes()[1].Addr()})
	require.NoError(t, err)
	findings, err := Examine(t.Context(), Examination{Server: srv, Needs: []string{"listeners"}})
	require.NoError(t, err)
	all := map[string]Finding{}
	for _, f := range findings {
		all[f.Check] = f
	}
	return all
}

func TestExamineReportsMovingSlotsAndDownMasters(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	require.Equal(t, OK, examinedCluster(t, c)["slots"].Level)
	const slot = 15495 // of "a", of the third master
	from, to := c.Owner(t, "a"), c.Nodes()[0]
	require.NotSame(t, from, to)
	c.MoveSlot(t, slot, to, func() {
		f := examinedCluster(t, c)["slots"]
		require.Equal(t, Warning, f.Level)
		require.Contains(t, f.Found, "slot 15495 is being moved")
	})
	down := c.Owner(t, "foo") // 12182, of the third master
	down.Kill()
	all := examinedCluster(t, c)
	require.Equal(t, Error, all["master"].Level)
	require.Contains(t, all["master"].Found, "cannot reach Redis at "+down.Addr()+", a master of ")
	require.Contains(t, all["server"].Found, "one of 3 masters")
}
