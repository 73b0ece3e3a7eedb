package diagnosis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func noError(t *testing.T, all map[string]Finding, but ...string) {
	t.Helper()
	for name, f := range all {
		if f.Level == Error {
			require.Contains(t, but, name, "%+v", f)
		}
	}
}

func TestDoctorSendsNoScriptWithoutKeys(t *testing.T) {
	t.Parallel()
	all := examined(t, redistest.StartLimited(t, redistest.Limits{Keyless: true}), "", Needs()...)
	noError(t, all)
	for _, check := range []string{"scripts", "script keys", "script messages", "lock", "fair lock", "latency", "plain rights", "read-write rights"} {
		require.Equal(t, OK, all[check].Level, all[check].Found)
	}
}

func TestDoctorReportsRefusedUndeclaredKeys(t *testing.T) {
	t.Parallel()
	url := redistest.StartLimited(t, redistest.Limits{Undeclared: true})
	want := Finding{
		Check: "script keys", Level: Warning,
		Found:  "scripts may use only declared keys: ERR script tried accessing undeclared key",
		Advice: "Read/write locks do not work: their scripts use undeclared keys of other readers. Other locks, semaphores and latches work.",
	}
	all := examined(t, url, "")
	noError(t, all)
	require.Equal(t, want, all["script keys"])
	require.NotContains(t, examined(t, url, "", "fair"), "script keys")
	want.Level = Error
	require.Equal(t, want, examined(t, url, "", "read-write")["script keys"])
}

func TestDragonflyFlagAllowsUndeclaredKeys(t *testing.T) {
	t.Parallel()
	url := redistest.StartLimited(t, redistest.Limits{Flagged: true})
	all := examined(t, url, "")
	noError(t, all)
	require.Equal(t, Finding{Check: "script keys", Found: "scripts may use undeclared keys"}, all["script keys"])
	client, err := redlatch.Open(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	rw := rreadwritelock.New(client, "job")
	one, err := rw.Read().TryLock(t.Context())
	require.NoError(t, err)
	two, err := rw.Read().TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, one.Unlock())
	require.NoError(t, two.Unlock())
}

func TestDoctorReportsScriptsThatCannotPublish(t *testing.T) {
	t.Parallel()
	all := examined(t, redistest.StartLimited(t, redistest.Limits{Publish: true}), "")
	noError(t, all, "script messages", "lock")
	require.Equal(t, Finding{
		Check: "script messages", Level: Error, Found: "scripts cannot publish: ERR PUBLISH is disabled",
		Advice: "Unlock frees the lock but returns an error and wakes no waiter: waiters find the free lock by polling.",
	}, all["script messages"])
	require.Contains(t, all["lock"].Advice, "see script messages above")
	require.Equal(t, OK, all["pub/sub"].Level)
}

func TestDoctorReportsUntriedScriptsAsUnknown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "limited", "on", ">"+redistest.Password, "~*", "resetchannels", "+@all")
	require.Equal(t, Finding{Check: "script messages", Level: Unknown, Found: "not tested: see the rights below"},
		examined(t, s.UserURL("limited"), "")["script messages"])
	_, url := redistest.StartWithout(t, []string{"eval"})
	all := examined(t, url, "")
	require.Equal(t, Error, all["scripts"].Level)
	require.Equal(t, "Locks are Lua scripts and do not work without them.", all["scripts"].Advice)
	require.Contains(t, all["lock"].Advice, "see scripts above")
	for _, check := range []string{"script keys", "script messages"} {
		require.Equal(t, Finding{Check: check, Level: Unknown, Found: "not tested: see scripts above"}, all[check])
	}
}

func TestDoctorRunsScriptsOnEachMaster(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	url := "redis-cluster://" + strings.Join(redistest.StartCluster(t, 3, 0).Addrs(), ",")
	all := examined(t, url, "")
	noError(t, all)
	for _, check := range []string{"scripts", "script keys", "script messages"} {
		require.Equal(t, OK, all[check].Level, all[check].Found)
	}
	all = examined(t, url, "{app}:") // in one slot
	noError(t, all)
	for _, check := range []string{"scripts", "script keys", "script messages", "latency"} {
		require.Equal(t, OK, all[check].Level, all[check].Found)
	}
	srv, err := connect.New(connect.Settings{Address: url})
	require.NoError(t, err)
	masters, err := srv.Nodes(t.Context())
	require.NoError(t, err)
	for _, master := range masters {
		c, err := master.Dial(t.Context())
		require.NoError(t, err)
		for range 8 {
			e := newExam(t.Context(), master, c, "")
			require.NoError(t, e.try([]any{"EVAL", probeScript, 1, e.name}))
		}
		require.NoError(t, c.Close())
	}
}

func TestSlotMovesAreReadFromMastersLine(t *testing.T) {
	t.Parallel()
	const nodes = "aa 10.0.0.1:7011@17011 myself,master - 0 0 1 connected 0-5460 [7->-bb] [9-<-cc]\n" +
		"bb 10.0.0.2:7012@17012,host master - 0 1 2 connected 5461-10922 [8->-cc]\ncc 10.0.0.3:7013@17013 master - 0 1 3 connected\n"
	require.Equal(t, []string{"slot 7 is moving to 10.0.0.2:7012", "slot 9 is moving here from 10.0.0.3:7013"}, movesIn(nodes))
	require.Empty(t, movesIn("garbled"))
	many := "aa h:1@2 myself,master - 0 0 1 connected" + strings.Repeat(" [7->-aa]", shownMoves+2)
	require.Equal(t, "and 2 more", movesIn(many)[shownMoves])
}

func TestExamineReportsMovingSlotsAndDownMasters(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	url := "redis-cluster://" + c.Nodes()[1].Addr()
	require.Equal(t, OK, examined(t, url, "", "listeners")["slots"].Level)
	const slot = 15495 // the slot of "a", on the third master
	from, to := c.Owner(t, "a"), c.Nodes()[0]
	require.NotSame(t, from, to)
	c.MoveSlot(t, slot, to, func() {
		f := examined(t, url, "", "listeners")["slots"]
		require.Equal(t, Warning, f.Level)
		require.Contains(t, f.Found, "slot 15495 is moving")
	})
	down := c.Owner(t, "foo") // 12182, on the third master
	down.Kill()
	all := examined(t, url, "", "listeners")
	require.Equal(t, Error, all["master"].Level)
	require.Contains(t, all["master"].Found, "cannot reach Redis at "+down.Addr()+", a master of ")
	require.Contains(t, all["server"].Found, "one of 3 masters")
}

func TestDoctorNamesUnknownCommand(t *testing.T) {
	t.Parallel()
	_, url := redistest.StartWithout(t, []string{"wait", "role"})
	found := examined(t, url, "")
	require.Equal(t, Finding{
		Check: "replicas rights", Level: Warning, Found: "the server lacks wait, which waits for replicas need",
		Advice: "WithReplicaSync does not work.",
	}, found["replicas rights"])
	require.Equal(t, Warning, found["listeners rights"].Level)
	require.Equal(t, Warning, found["counting"].Level, found["counting"].Found)
	require.Equal(t, Error, examined(t, url, "", "replicas")["replicas rights"].Level)
}
