package diagnosis

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func examined(t *testing.T, url, prefix string, needs ...string) map[string]Finding {
	t.Helper()
	srv, err := connect.New(connect.Settings{Address: url})
	require.NoError(t, err)
	findings, err := Examine(t.Context(), Examination{Server: srv, Prefix: prefix, Needs: needs})
	require.NoError(t, err)
	all := map[string]Finding{}
	for _, f := range findings {
		all[f.Check] = f
	}
	require.Len(t, all, len(findings), "two checks of one name")
	return all
}

func TestDoctorChecksSettings(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, c := range []struct {
		settings []string // pairs
		check    string
		level    Level
		says     string
	}{
		{[]string{"maxmemory", "100mb", "maxmemory-policy", "allkeys-lru"}, "eviction", Warning, "allkeys-lru with maxmemory 100 MB may evict a held lock"},
		{[]string{"maxmemory", "100mb", "maxmemory-policy", "noeviction"}, "eviction", OK, "noeviction, "},
		{[]string{"maxmemory", "1mb"}, "eviction", Error, "full: "},
		{[]string{"maxmemory", "0", "maxmemory-policy", "volatile-ttl"}, "eviction", OK, "volatile-ttl, and no maxmemory"},
		{[]string{"appendonly", "no"}, "persistence", Warning, "do not survive a crash"},
		{[]string{"appendonly", "yes", "appendfsync", "always"}, "persistence", OK, "appendfsync always"},
		{[]string{"tcp-keepalive", "0"}, "keepalive", Warning, "look alive forever"},
		{[]string{"tcp-keepalive", "600"}, "keepalive", Warning, "for 600 s"},
		{[]string{"tcp-keepalive", "60"}, "keepalive", OK, "after 60 s"},
	} {
		for i := 0; i < len(c.settings); i += 2 {
			s.Do(t, "CONFIG", "SET", c.settings[i], c.settings[i+1])
		}
		f := examined(t, s.URL(), "")[c.check]
		require.Equal(t, c.level, f.Level, "%s: %s", c.says, f.Found)
		require.Contains(t, f.Found, c.says)
		require.Equal(t, c.level != OK, f.Advice != "", f.Advice)
	}
}

func TestNearlyFullMemoryIsWarning(t *testing.T) {
	t.Parallel()
	for used, level := range map[string]Level{"89": OK, "91": Warning, "99": Warning, "100": Error, "150": Error} {
		e := examination{info: map[string]string{"maxmemory_policy": "noeviction", "maxmemory": "100", "used_memory": used}}
		require.Equal(t, level, e.eviction().Level, used)
	}
}

func TestOldRedisIsError(t *testing.T) {
	t.Parallel()
	for version, level := range map[string]Level{"5.0.14": Error, "6.0.16": Error, "6.2.14": OK, "10.0.0": OK, "odd": OK, "": OK} {
		e := examination{info: map[string]string{"redis_mode": "standalone", "redis_version": version}}
		require.Equal(t, level, e.server().Level, version)
	}
}

func TestDoctorWithoutPasswordReportsNoFindings(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, redistest.WithPassword("sesame"))
			srv, err := connect.New(connect.Settings{Address: "redis://" + s.Addr()})
			require.NoError(t, err)
			findings, err := Examine(t.Context(), Examination{Server: srv})
			require.ErrorContains(t, err, "rejected the request: NOAUTH Authentication required. Check the user and password: --user, and REDIS_PASSWORD")
			require.Empty(t, findings)
		})
	}
}

func TestDoctorReportsFullMemoryNotRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1mb")
	all := examined(t, s.URL(), "")
	require.Contains(t, all["lock"].Found, "OOM")
	require.Equal(t, "Nothing works without locks: see eviction below.", all["lock"].Advice)
	require.Equal(t, "Free memory, or raise maxmemory.", all["eviction"].Advice)
	require.Contains(t, all["eviction"].Found, "locks are rejected")
	// Redis still grants a free fair lock, which does not prove anything.
	require.Equal(t, Warning, all["fair lock"].Level, all["fair lock"].Found)
	require.Equal(t, "See eviction below.", all["fair lock"].Advice)
}

func TestUnprovenNeedIsError(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1mb")
	require.Equal(t, Error, examined(t, s.URL(), "", "fair")["fair lock"].Level)
}

func TestDoctorChecksReplicas(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	all := examined(t, master.URL(), "")
	require.Equal(t, Warning, all["replicas"].Level, all["replicas"].Found)
	require.Contains(t, all["replicas"].Advice, "min-replicas-to-write 1")
	require.Equal(t, OK, all["counting"].Level, all["counting"].Found)
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", 1)
	require.Equal(t, "1, in sync, min-replicas-to-write 1", examined(t, master.URL(), "")["replicas"].Found)

	all = examined(t, replica.URL(), "")
	require.Contains(t, all["server"].Found, "a replica, which cannot take locks")
	require.Equal(t, "Use the master, "+master.Addr()+".", all["server"].Advice)
	require.Equal(t, Error, all["server"].Level)
	require.Equal(t, Error, all["lock"].Level)
	require.Equal(t, "Nothing works without locks: see server above.", all["lock"].Advice)
	require.Contains(t, all["lock"].Found, "not tested")
	for _, check := range []string{"fair lock", "counting"} {
		require.Equal(t, Warning, all[check].Level)
		require.Equal(t, "See server above.", all[check].Advice)
		require.Contains(t, all[check].Found, "not tested")
	}
	require.Contains(t, all["replicas"].Found, "this is a replica of 127.0.0.1:")
}

func TestDoctorReportsRedissonClusterChoice(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes", "--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf")))
	all := examined(t, s.URL(), "")
	require.Equal(t, Error, all["server"].Level)
	require.Contains(t, all["server"].Found, "part of a cluster")
	require.Contains(t, all["sharded"].Found, "Redisson's AUTO uses SPUBLISH")
	require.Equal(t, "not tested: one node does not know a cluster's subscribers", all["counting"].Found)
}

func TestDoctorReportsClockOffset(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.SetTime(time.Now().Add(-24 * time.Hour)) // the clock also stops
	f := examined(t, s.URL(), "")["clock"]
	require.Equal(t, Warning, f.Level, f.Found)
	require.Regexp(t, `^the server.s clock is (24h0m|23h59m).* behind`, f.Found)
}

func TestSynchronizedClocksAreNotReported(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{
		0: "in sync with this machine's", -40 * time.Microsecond: "in sync with this machine's", -time.Second: "1s behind", 1500 * time.Microsecond: "1.5ms ahead",
	} {
		require.Equal(t, want, offset(ahead))
	}
}

func TestWorstReturnsHighestSeverity(t *testing.T) {
	t.Parallel()
	require.Equal(t, OK, Worst(nil))
	require.Equal(t, Warning, Worst([]Finding{{Level: Unknown}, {Level: Warning}, {Level: OK}}))
	for level, word := range map[Level]string{OK: "ok", Unknown: "unknown", Warning: "warning", Error: "error"} {
		text, err := level.MarshalText()
		require.NoError(t, err)
		require.Equal(t, word, string(text))
	}
}

type answered struct {
	redis.Conn
	reply any
	err   error
}

func (a answered) Do(string, ...any) (any, error) { return a.reply, a.err }

func (answered) Err() error { return nil }

func TestDoctorReportsWhyINFOFailed(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]answered{
		"INFO is not permitted (+info)":                                  {err: redis.Error("NOPERM this user has no permissions to run the 'info' command")},
		"INFO fails: ERR unknown command 'INFO'":                         {err: redis.Error("ERR unknown command 'INFO'")},
		"INFO fails: redigo: unexpected type for String, got type int64": {reply: int64(1)},
	} {
		e := &examination{ctx: t.Context(), c: c}
		e.read()
		for _, check := range e.checks() {
			if !check.info {
				continue
			}
			f, err := check.at([]*examination{e})
			require.NoError(t, err)
			require.Equal(t, Finding{Check: check.name, Level: Unknown, Found: want}, f)
		}
	}
}
