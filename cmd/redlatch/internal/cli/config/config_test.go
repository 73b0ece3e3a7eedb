package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const example = `# Servers of the team.
current-context: dev  # until Friday
contexts:
  dev:
    redis: redis://127.0.0.1:6379

  prod: # careful
    redis: redis-sentinel://s1:26379,s2:26379/m
    user: operator
    password-command: [pass, show, redis/prod]
    tls-ca: prod-ca.pem
`

func TestFileErrorsNameLineAndKey(t *testing.T) {
	t.Parallel()
	manyKeys := ""
	for i := range 2 * maxKeys {
		manyKeys += strconv.Itoa(i) + ":\n"
	}
	for text, says := range map[string]string{
		"contexts:\n  a:\n    redis: redis://h\n    pasword-file: x\n":  "line 4: unknown key pasword-file",
		"contexts:\n  a:\n    redis: redis://h\n    password: sesame\n": "line 4: unknown key password: use password-file or password-command",
		"contexts:\n  a:\n    \"x\\ny\": sesame\n":                      `line 3: unknown key "x\ny"`,
		"context: a\n": "line 1: unknown key context",
		"contexts:\n  a:\n    redis: redis://h\n    tls-insecure-skip-verify: sesame\n": "line 4: unexpected value of type str",
		"contexts:\n  - name: sesame\n":                                                      "line 2: unexpected value of type seq",
		"contexts:\n  a:\n    redis: redis://h\n    password-command: cat sesame\n":          "line 4: password-command must be a list",
		"contexts:\n  a:\n    redis: redis://h\n    password-command: []\n":                  "line 4: password-command must be a list",
		"contexts:\n  a:\n    redis: redis://sesame@h\n":                                     "context a in /etc/c.yaml: redis contains a password",
		"contexts:\n  a:\n    redis: redis://:sesame@h\n":                                    "context a in /etc/c.yaml: redis contains a password",
		"contexts:\n  a:\n    redis: redis-sentinel://h/m?sentinel_password=sesame\n":        "REDIS_URL for an address with sentinel_password",
		"contexts:\n  a:\n    redis: sesame\n":                                               "context a in /etc/c.yaml: redis: invalid address",
		"contexts:\n  a:\n":                                                                  "context a in /etc/c.yaml: redis is missing",
		"contexts:\n  a: {redis: 'redis://h', password-file: x, password-command: [y]}\n":    "mutually exclusive",
		"contexts: {a: {redis: 'redis://h'}, a: {redis: 'redis://i'}}\n":                     "line 1: duplicate key a",
		"contexts: {}\n---\ncontexts: {}\n":                                                  "more than one document",
		"contexts: [\n":                                                                      "line 1: ",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\ncontexts: [*b,*b,*b,*b]\n": "unknown key a",
		strings.Repeat("[", 1<<19):                                                           "depth",
		strings.Repeat("k: v\n", maxSize):                                                    "line 2: duplicate key k",
		manyKeys:                                                                             "line 1001: more than 1000 keys",
	} {
		f, err := parse("/etc/c.yaml", []byte(text))
		if err == nil {
			_, err = f.Find("a")
		}
		require.ErrorContains(t, err, says, "%.80s", text)
		require.NotContains(t, err.Error(), "sesame", "%.80s", text)
		require.NotContains(t, err.Error(), "config.", "a Go type in %.80s", text)
	}
	for _, none := range []string{"", "# nothing\n", "contexts:\n"} {
		f, err := parse("/etc/c.yaml", []byte(none))
		require.NoError(t, err)
		require.Empty(t, f.Names())
	}
}

func FuzzFileNeverPanics(f *testing.F) {
	f.Add(example)
	f.Add("contexts: &a {x: *a}")
	f.Add("contexts:\r  a: {redis: 'redis://h'}\rcurrent-context: a\r")
	f.Add("\u2028#\u0085contexts:\u2029  a: {redis: 'redis://h'}\u2028current-context: a")
	f.Add("contexts:\r\n  a: {redis: 'redis://h'}\r\ncurrent-context: a\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		f, err := parse("/etc/c.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, name := range f.Names() {
			if c, err := f.Find(name); err == nil {
				require.NotEmpty(t, c.Redis)
			}
			_, _ = withCurrent([]byte(text), name)
		}
	})
}

func TestPathsStartAtFile(t *testing.T) {
	t.Parallel()
	f, err := parse("/etc/redlatch/c.yaml", []byte(example))
	require.NoError(t, err)
	require.Equal(t, []string{"dev", "prod"}, f.Names())
	require.Equal(t, "/etc/redlatch/prod-ca.pem", f.Contexts["prod"].TLS().CA)
	require.Equal(t, Command{"pass", "show", "redis/prod"}, f.Contexts["prod"].PasswordCommand)
	require.Empty(t, f.Contexts["dev"].TLS())
	g, err := parse("/etc/redlatch/c.yaml", []byte("contexts: {a: {password-file: secret, password-command: [./secret, ./x]}}"))
	require.NoError(t, err)
	require.Equal(t, "/etc/redlatch/secret", g.Contexts["a"].PasswordFile)
	require.Equal(t, Command{"/etc/redlatch/secret", "./x"}, g.Contexts["a"].PasswordCommand)
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	g, err = parse("/etc/redlatch/c.yaml", []byte("contexts: {a: {password-file: ~/secret, password-command: [~/secret, ~/x]}}"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, "secret"), g.Contexts["a"].PasswordFile)
	require.Equal(t, Command{filepath.Join(home, "secret"), "~/x"}, g.Contexts["a"].PasswordCommand)
	_, err = f.Find("prd")
	require.EqualError(t, err, "context prd is not in /etc/redlatch/c.yaml, which has dev, prod")
}

func TestUseChangesOnlyOneLine(t *testing.T) {
	t.Parallel()
	without := strings.Replace(example, "current-context: dev  # until Friday\n", "", 1)
	for _, c := range []struct{ name, text, use, want string }{
		{"named", example, "prod", strings.Replace(example, "dev  # until", "prod # until", 1)},
		{"not named", without, "prod", strings.Replace(without, "contexts:", "current-context: prod\ncontexts:", 1)},
		{"odd name", "contexts: {'no': {redis: 'redis://h'}}", "no", "current-context: \"no\"\ncontexts: {'no': {redis: 'redis://h'}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "link.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o640))
			require.NoError(t, os.Symlink(file, link))
			f, err := parse(link, []byte(c.text))
			require.NoError(t, err)
			require.NoError(t, f.Use(c.use))
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			info, err := os.Lstat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode())
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 2, "a temporary file is left")
		})
	}
	for _, text := range []string{"{contexts: {a: {redis: 'redis://h'}}}", "current-context: >-\n  b\ncontexts: {a: {redis: 'redis://h'}}"} {
		f, err := parse("/nowhere/c.yaml", []byte(text))
		require.NoError(t, err)
		require.ErrorContains(t, f.Use("a"), "change it with an editor")
	}
}

func TestFileWritableByOthersIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o644: false, 0o664: true, 0o646: true} {
		require.NoError(t, os.WriteFile(path, []byte(example), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		_, err := read(path, ownedByOther)
		require.Equal(t, refused, err != nil, mode)
		if refused {
			require.ErrorContains(t, err, "other users can write this file: run chmod go-w on it")
		}
	}
	require.NoError(t, os.WriteFile(path, make([]byte, maxSize+1), 0o600))
	require.NoError(t, os.Chmod(path, 0o600))
	_, err := read(path, ownedByOther)
	require.ErrorContains(t, err, "larger than")
}

func TestPasswordIsOutputOfCommand(t *testing.T) {
	t.Parallel()
	sh := func(script string) Command { return Command{"sh", "-c", script} }
	for _, c := range []struct {
		command    Command
		want, says string
	}{
		{sh("printf 'open sesame\\n'"), "open sesame", ""},
		{sh("printf ' sesame \\r\\n'"), " sesame ", ""},
		{Command{"printf", "%s", "$HOME;x"}, "$HOME;x", ""},
		{sh("wc -c"), "0", ""}, // no input
		{sh("echo sesame; echo 'no secret key' >&2; exit 2"), "", "password-command sh: exit status 2: no secret key"},
		{sh("exit 0"), "", "its output is empty"},
		{sh("echo sesame; echo user"), "", "printed more than one line"},
		{sh("head -c 100000 /dev/zero"), "", "printed more than 65536 bytes"},
		{sh("printf '\\033[2J' >&2; exit 1"), "", `exit status 1: "\x1b[2J"`},
		{Command{"/no/such/program"}, "", "password-command /no/such/program: "},
	} {
		got, err := c.command.Password(t.Context(), "")
		require.Equal(t, c.want, got)
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.says)
		require.NotContains(t, err.Error(), "sesame")
	}
	_, err := sh("sleep 600").password(t.Context(), "", 10*time.Millisecond)
	require.ErrorContains(t, err, "not finished after ")
}
