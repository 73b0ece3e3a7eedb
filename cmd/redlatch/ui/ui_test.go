package ui_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// load returns the status and the text of a page, for a user, "" for none.
func load(t *testing.T, address, user, password string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(body)
}

func TestUIServesThePageUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("one process cannot interrupt another there")
	}
	s := redistest.Start(t)
	s.Do(t, "HSET", "nightly-report", program.SomeOwner, 1)
	p := program.Start(t, s.URL(), "ui", "--addr", "127.0.0.1:0")
	address := p.Line()
	require.True(t, strings.HasPrefix(address, "http://127.0.0.1:"), address)
	status, text := load(t, address, "", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, "nightly-report")
	status, text = load(t, address+"lock?name=nightly-report", "", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, "holds it without a lease")
	stream, err := http.Get(address + "events")
	require.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt)) // with a stream open
	require.Empty(t, p.Rest())
	require.Equal(t, program.CodeInterrupted, p.Code())
	require.Contains(t, p.Stderr.String(), "read-only page of the locks at "+s.URL())
}

func TestUIWantsThePasswordOfItsFile(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	file := filepath.Join(t.TempDir(), "auth")
	require.NoError(t, os.WriteFile(file, []byte("ops:s3cret:x\n"), 0o600))
	p := program.Start(t, s.URL(), "ui", "--addr", "0.0.0.0:0", "--auth", file)
	address := p.Line()
	require.True(t, strings.HasPrefix(address, "http://localhost:"), address)
	for what, c := range map[string]struct {
		user, password string
		status         int
	}{
		"none":           {"", "", 401},
		"wrong password": {"ops", "s3cret", 401},
		"wrong user":     {"op", "s3cret:x", 401},
		"right":          {"ops", "s3cret:x", 200},
	} {
		for _, path := range []string{"", "static/page.js"} {
			status, _ := load(t, address+path, c.user, c.password)
			require.Equal(t, c.status, status, what)
		}
	}
}

func TestUIIsNotServedToOthersByMistake(t *testing.T) {
	t.Parallel()
	for flags, said := range map[string]string{
		"--addr 0.0.0.0:0":                "can be reached from other machines",
		"--addr :0":                       "can be reached from other machines",
		"--addr 192.0.2.1:0 --read-only":  "say --read-only twice",
		"--addr locks.example.com:80":     "can be reached from other machines",
		"--addr 127.0.0.1":                "--addr must be host:port",
		"--every 1ms":                     "--every must be at least 100ms",
		"--addr [::]:0 --auth /no/file":   "--auth: open /no/file",
		"--addr 127.0.0.1:0 --read-only=": "invalid argument",
	} {
		got := program.Finish(t, program.NoServer(t), append([]string{"ui"}, strings.Fields(flags)...)...)
		require.Equal(t, 2, got.Code, flags)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, said, flags)
	}
	got := program.Finish(t, program.NoServer(t), "ui", "--addr", "127.0.0.1:0")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Stderr, "cannot reach Redis")
}

func TestUIServedToAllIsSaidTwice(t *testing.T) {
	t.Parallel()
	p := program.Start(t, redistest.Shared(t).URL(), "ui", "--addr", "0.0.0.0:0", "--read-only", "--read-only")
	status, _ := load(t, p.Line(), "", "")
	require.Equal(t, 200, status)
}
