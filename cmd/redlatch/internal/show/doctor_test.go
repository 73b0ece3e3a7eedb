package show

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
)

// volatile replaces text that differs between runs and servers.
var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`redis://127\.0\.0\.1:\d+`), "redis://ADDRESS"},
	{regexp.MustCompile(`(Redis|Valkey) \d+\.\d+\.\d+`), "Redis VERSION"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s) (ahead|behind)|in sync with this machine's`), "OFFSET"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`), "TIME"},
	{regexp.MustCompile(`NOPERM [^"]*`), "NOPERM"},
	{regexp.MustCompile(`(no sharded pub/sub|sharded pub/sub works);`), "SHARDED;"},
}

func diagnosed(t *testing.T, name, text string) {
	t.Helper()
	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.with)
	}
	program.Golden(t, name, text)
}

func fitsButForCommands(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "    ACL SETUSER ") {
			program.Narrow(t, line)
		}
	}
}

func TestDoctorPrintsTextAndJSON(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			got := program.Finish(t, s.URL(), "doctor")
			require.Equal(t, program.Outcome{Stdout: got.Stdout}, got)
			diagnosed(t, "doctor", got.Stdout)
			fitsButForCommands(t, got.Stdout)
			diagnosed(t, "doctor.json", program.OK(t, s.URL(), "doctor", "--json"))
			require.EqualValues(t, 0, s.Do(t, "DBSIZE"), "something is left on the server")
			require.Empty(t, s.Channels(t))
		})
	}
}

func TestDoctorExaminesUserWithoutRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "guest", "reset", "on", ">password", "+ping")
	url := "redis://guest:password@" + s.Addr()
	got := program.Finish(t, url, "doctor", "--prefix", "app:")
	require.Equal(t, 2, got.Code, got.Stderr)
	fitsButForCommands(t, got.Stdout)
	require.Regexp(t, `\n    ACL SETUSER guest \+eval .*\n(.*\n)*3 errors, 14 warnings\n--need plain, .*\n$`, got.Stdout)
	got = program.Finish(t, url, "doctor", "--prefix", "app:", "--json")
	require.Equal(t, 2, got.Code, got.Stderr)
	diagnosed(t, "doctor-guest.json", got.Stdout)
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}

func TestDoctorRejectsInexpressiblePrefix(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"a b +@all ~*", "a\n", "a'b", `a"b`, "\x1b[2J", "a\xff"} {
		got := program.Finish(t, "redis://127.0.0.1:1", "doctor", "--prefix", prefix)
		require.Equal(t, program.Outcome{Code: 2, Stderr: fmt.Sprintf(
			"redlatch: --prefix %q: ACL SETUSER rules cannot contain white space, quotes or control characters\n", prefix)}, got)
	}
}

func TestDoctorExitsWithWorstFinding(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.Equal(t, 0, program.Finish(t, s.URL(), "doctor").Code, "warnings are no errors")
	require.Equal(t, 1, program.Finish(t, s.URL(), "doctor", "--strict").Code)
	s.Do(t, "CONFIG", "SET", "appendonly", "yes")
	require.Contains(t, program.OK(t, s.URL(), "doctor", "--strict"), "\n0 errors, 0 warnings\n")
	for _, url := range []string{program.NoServer(t), "sesame"} {
		got := program.Finish(t, url, "doctor")
		require.Equal(t, 2, got.Code)
		program.OneLine(t, got.Stderr)
	}
}

func TestDoctorHelpExplainsEachNeed(t *testing.T) {
	t.Parallel()
	for _, need := range diagnosis.Needs() {
		require.Regexp(t, `(?m)^  (\S.{34})?`+need+` +\S`, doctorHelp)
	}
}

func TestDoctorPassesWithRequiredRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "CONFIG", "SET", "appendonly", "yes")
	url := s.GiveRights(t, []string{"Plain locks", "Server time"}, "+info", "+config|get")
	diagnosed(t, "doctor-need", program.OK(t, url, "doctor", "--prefix", "app:", "--need", "plain", "--need", "clocks", "--strict"))
	got := program.Finish(t, url, "doctor", "--prefix", "app:", "--strict")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Stdout, "    ACL SETUSER locks +hgetall\n")
	require.Contains(t, got.Stdout, " warnings\n"+needHint+"\n")
	got = program.Finish(t, url, "doctor", "--prefix", "app:", "--need", "clocks,doubt", "--json")
	require.Equal(t, 2, got.Code)
	diagnosed(t, "doctor-need.json", got.Stdout)
	for _, need := range []string{"", "fair,none", "Plain"} {
		got = program.Finish(t, program.NoServer(t), "doctor", "--need="+need)
		require.Equal(t, program.Outcome{Code: 2, Stdout: "", Stderr: "redlatch: --need must be a comma-separated list of plain, braces, fair, tokens, read-write, latches, semaphores, clocks, listeners, doubt, inspect, " +
			"owners, names, replicas, labels, onlooker, operator, viewer\n"}, got)
	}
}

func TestFindingsAreColoredOnlyOnTerminal(t *testing.T) {
	t.Parallel()
	f := &diagnosis.Finding{Check: "clock", Level: diagnosis.Warning, Found: strings.Repeat("x", 50) + " is" + strings.Repeat(" word", 20)}
	plain := finding(f, cli.Look(false))
	require.NotContains(t, plain, "\x1b")
	program.Narrow(t, plain)
	require.Contains(t, finding(f, cli.Look(true)), string(cli.Yellow)+"warning ")
	require.Equal(t, plain, strings.NewReplacer(string(cli.Yellow), "", "\x1b[0m", "").Replace(finding(f, cli.Look(true))))

	const odd = "7.0 \x1b]0;title\a\x1b[2J" // as a server may say
	shown := finding(&diagnosis.Finding{Check: "server", Found: odd, Advice: odd, Command: odd}, cli.Look(false))
	require.NotContains(t, shown, "\x1b")
	require.NotContains(t, shown, "\a")
	require.Contains(t, shown, "7.0 ")
}
