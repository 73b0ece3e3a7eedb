package ui_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

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

func TestUIServesUntilInterrupted(t *testing.T) {
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

func TestUIRequiresPasswordFromFile(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	file := filepath.Join(t.TempDir(), "auth")
	require.NoError(t, os.WriteFile(file, []byte("ops:s3cret:x\r\nnight:0ther\n"), 0o600))
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
		"another's":      {"ops", "0ther", 401},
		"right":          {"ops", "s3cret:x", 200},
		"the second":     {"night", "0ther", 200},
	} {
		for _, path := range []string{"", "static/page.js"} {
			status, _ := load(t, address+path, c.user, c.password)
			require.Equal(t, c.status, status, what)
		}
	}
}

func TestUIRequiresUsersAndPasswordsInFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "auth")
	for text, says := range map[string]string{
		"": "is empty", "ops\n": "one user:password line per user", ":x\n": "user:password line", "ops:\n": "user:password line", "a:b\n\n": "user:password line",
		"a:b\na:c\n": "user:password line per user",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		program.Fails(t, program.NoServer(t), 2, says, "ui", "--auth", file)
	}
	require.NoError(t, os.WriteFile(file, []byte("a:b\n"), 0o600))
	require.NoError(t, os.Chmod(file, 0o620))
	program.Fails(t, program.NoServer(t), 2, "other users can write this file", "ui", "--auth", file)
}

func TestUIRejectsPublicAddressByDefault(t *testing.T) {
	t.Parallel()
	for flags, said := range map[string]string{
		"--addr 0.0.0.0:0":              "is reachable from other machines",
		"--addr :0":                     "is reachable from other machines",
		"--addr 192.0.2.1:0":            "--auth FILE is required",
		"--addr locks.example.com:80":   "is reachable from other machines",
		"--addr 127.0.0.1":              "--addr must be host:port",
		"--every 1ms":                   "--every must be at least 100ms",
		"--addr [::]:0 --auth /no/file": "--auth: open /no/file",

		"--allow unlock":                "--allow requires --auth FILE",
		"--allow unlock,steal --auth x": "invalid action steal in --allow: must be unlock, evict or unlock,evict",
		"--allow --auth x":              "invalid action --auth in --allow",
	} {
		program.Fails(t, program.NoServer(t), 2, said, append([]string{"ui"}, strings.Fields(flags)...)...)
	}
	program.Fails(t, program.NoServer(t), 1, "cannot reach Redis", "ui", "--addr", "127.0.0.1:0")
}

func send(t *testing.T, address, user, password string, form url.Values) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(user, password)
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(body)
}

// allowing starts the page with actions and the user ops, whose password is s3cret.
func allowing(t *testing.T, server, actions string) (*program.Process, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "auth")
	require.NoError(t, os.WriteFile(file, []byte("ops:s3cret\n"), 0o600))
	p := program.Start(t, server, "ui", "--addr", "127.0.0.1:0", "--allow", actions, "--auth", file)
	return p, p.Line()
}

func TestUIOffersAllowedActionsAndAuditsThem(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("one process cannot interrupt another there")
	}
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
	p, address := allowing(t, s.URL(), "unlock")
	_, text := load(t, address+"lock?name=job", "ops", "s3cret")
	require.Contains(t, text, "Force unlock")
	form := url.Values{"holder": {program.SomeOwner}, "dead": {program.SomeOwner}, "reason": {"host\nis gone"}}
	status, _ := send(t, address+"unlock?name=job", "ops", "wrong", form)
	require.Equal(t, 401, status)
	require.True(t, program.Exists(t, s, "job"))
	status, text = send(t, address+"unlock?name=job", "ops", "s3cret", form)
	require.Equal(t, 200, status, text)
	require.False(t, program.Exists(t, s, "job"))
	status, _ = send(t, address+"evict?name=job", "ops", "s3cret", url.Values{"owner": {"YQ"}, "reason": {"x"}})
	require.Equal(t, 403, status)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	require.Equal(t, program.CodeInterrupted, p.Code())
	require.Regexp(t, `^redlatch: page of the locks at redis://\S+, with the actions unlock; press Ctrl-C to stop
redlatch: login: \S+Z from 127.0.0.1:\d+: wrong password of ops
redlatch: audit: \S+Z ops from 127.0.0.1:\d+: unlock of lock "job" from `+program.SomeOwner+`; reason "host\\nis gone"; begun
redlatch: audit: \S+Z ops from 127.0.0.1:\d+: unlock of lock "job" from `+program.SomeOwner+`; reason "host\\nis gone"; done: no waiter was notified: .*
redlatch: audit: \S+Z ops from 127.0.0.1:\d+: evict of lock "job" from a; reason "x"; denied: you are not allowed to perform this action
$`, p.Stderr.String())
}

func streamed(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	r.SetBasicAuth("ops", "s3cret")
	stream, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()
	line, err := bufio.NewReader(stream.Body).ReadString('\n')
	require.NoError(t, err)
	return line
}

// viewed starts a server and its page, whose user may only look.
func viewed(t *testing.T) (s *redistest.Server, address string) {
	t.Helper()
	s = redistest.Start(t)
	s.Do(t, "HSET", "app:job", program.SomeOwner, 1)
	s.Do(t, "SET", "redlatch:label:"+program.SomeOwner[:36], program.LabelText)
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "app:books", "mode", "read", program.RedissonOwner, 1)
	s.Do(t, "SET", "{app:books}:"+program.RedissonOwner+":rwlock_timeout:1", 1, "PX", 600_000)
	s.Do(t, "HSET", "other", program.SomeOwner, 1)
	_, address = allowing(t, s.GiveLooks(t), "unlock,evict")
	return s, address
}

func TestDocumentedViewerSeesAllPagesReadOnly(t *testing.T) {
	t.Parallel()
	s, address := viewed(t)
	owner := evicts.Get("owner")
	for path, says := range map[string][]string{
		"":                                  {"app:job", "app:books", program.LabelText},
		"lock?name=app:job":                 {program.SomeOwner, program.LabelText, "Queue (1)", "without a lease", program.RedissonOwner},
		"lock?name=app:books":               {"reads", program.RedissonOwner},
		"lock?name=app:none":                {"It is free"},
		"unlock?name=app:job":               {program.SomeOwner, program.LabelText},
		"evict?name=app:job&owner=" + owner: {program.RedissonOwner, "Place 1"},
	} {
		status, text := load(t, address+path, "ops", "s3cret")
		require.Equal(t, 200, status, path)
		require.NotContains(t, text, `role="alert"`, path)
		for _, part := range says {
			require.Contains(t, text, part, path)
		}
	}
	require.Equal(t, "event: change\n", streamed(t, address+"events?name=app:job"))

	for action, form := range map[string]url.Values{"unlock": takes, "evict": evicts} {
		status, text := send(t, address+action+"?name=app:job", "ops", "s3cret", form)
		require.Equal(t, 500, status, action)
		require.Contains(t, text, "<h1>Not done", action)
		require.Regexp(t, `Redis at \S+ rejected the request: .*redlatch doctor. shows the missing rights; docs/operations.md explains them\.<`, text, action)
	}
	require.True(t, program.Exists(t, s, "app:job"))
	require.Len(t, program.QueueOf(t, s, "app:job"), 1)

	status, text := load(t, address+"lock?name=other", "ops", "s3cret")
	require.Equal(t, 200, status)
	require.Contains(t, text, "NOPERM", "what the user may not see")
}

func TestDocumentedRepairUserRepairsOnPage(t *testing.T) {
	t.Parallel()
	s, address := viewed(t)
	repairs := redistest.Rights(t, "Repair user")
	require.Equal(t, "reset", repairs[2])
	s.Do(t, "ACL", append([]any{"SETUSER", "onlooker"}, repairs[3:]...)...)
	for action, form := range map[string]url.Values{"unlock": takes, "evict": evicts} {
		status, text := send(t, address+action+"?name=app:job", "ops", "s3cret", form)
		require.Equal(t, 200, status, text)
	}
	require.False(t, program.Exists(t, s, "app:job"))
	require.Empty(t, program.QueueOf(t, s, "app:job"))
}
