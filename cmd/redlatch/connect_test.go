package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// encrypted starts a server that requires TLS and a client certificate. It returns the address and
// the files of a certificate for both sides.
func encrypted(t *testing.T) (address, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotAfter:              time.Now().Add(time.Hour),
		DNSNames:              []string{"redis.example"},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: public}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	port := strconv.Itoa(redistest.UnusedPort(t))
	redistest.Start(t, redistest.WithArgs("--tls-port", port,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert))
	return net.JoinHostPort("127.0.0.1", port), cert, key
}

func TestTLSFlagsEncryptAndErrorsNameMissingFlag(t *testing.T) {
	t.Parallel()
	address, cert, key := encrypted(t)
	for _, c := range []struct {
		url   string
		flags []string
		says  string
	}{
		{"redis://", nil, "If this port uses TLS, use an address that starts with rediss"},
		{"rediss://", nil, "or set --tls-server-name to that name"},
		{"redis://", []string{"--tls-server-name", "redis.example"}, "Set --tls-ca"},
		{"redis://", []string{"--tls-ca", cert}, "or set --tls-server-name to that name"},
		{"redis://", []string{"--tls-ca", cert, "--tls-server-name", "redis.example"}, "et --tls-cert and --tls-key"},
		{"redis://", []string{"--tls-insecure-skip-verify"}, "et --tls-cert and --tls-key"},
		{"redis://", []string{"--tls-insecure-skip-verify=false"}, "or set --tls-server-name to that name"},
		{"redis://", []string{"--tls-ca", cert, "--tls-server-name", "redis.example", "--tls-cert", cert, "--tls-key", key}, ""},
		{"redis://", []string{"--tls-insecure-skip-verify", "--tls-cert", cert, "--tls-key", key}, ""},
	} {
		got := program.Finish(t, c.url+address, append(c.flags, "status", "x")...)
		if c.says == "" {
			require.Equal(t, program.Outcome{Code: 0, Stdout: "lock \"x\" is free\n", Stderr: ""}, got, "%v", c.flags)
			continue
		}
		require.Equal(t, 1, got.Code, "%v", c.flags)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, c.says, "%v", c.flags)
	}
}

func TestCredentialsComeFromFlagEnvironmentOrFile(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">open sesame", "+@all", "~*", "&*")
	s.Do(t, "ACL", "SETUSER", "default", "off")
	dir := t.TempDir()
	right, wrong, empty := filepath.Join(dir, "right"), filepath.Join(dir, "wrong"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{right: "open sesame\n", wrong: "sesame", empty: "\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.WriteFile(shared, []byte("open sesame\n"), 0o600))
	require.NoError(t, os.Chmod(shared, 0o620))
	for _, c := range []struct {
		what  string
		env   []string
		flags []string
		says  string // of an error
	}{
		{"environment", []string{"REDIS_PASSWORD=open sesame"}, []string{"--user", "reader"}, ""},
		{"file before environment", []string{"REDIS_PASSWORD=sesame"}, []string{"--user", "reader", "--password-file", right}, ""},
		{"address before environment", []string{"REDIS_PASSWORD=sesame", "REDIS_URL=redis://reader:open%20sesame@" + s.Addr()}, nil, ""},
		{"file before address", []string{"REDIS_URL=redis://reader:sesame@" + s.Addr()}, []string{"--password-file", right}, ""},
		{"wrong", []string{"REDIS_PASSWORD=sesame"}, []string{"--user", "reader"}, "rejected the request: WRONGPASS"},
		{"wrong file", nil, []string{"--user", "reader", "--password-file", wrong}, "Check the user (--user, or in the address) and password"},
		{"no password", nil, nil, "rejected the request: NOAUTH"},
		{"no password", nil, []string{"--user", "reader"}, "--user needs a password: in REDIS_PASSWORD"},
		{"no file", nil, []string{"--user", "reader", "--password-file", "/no/such/file"}, "--password-file: open /no/such/file: no such file"},
		{"shared file", nil, []string{"--user", "reader", "--password-file", shared}, "other users can write this file"},
		{"empty file", nil, []string{"--user", "reader", "--password-file", empty}, "contains no password"},
	} {
		env := append([]string{"REDIS_URL=redis://" + s.Addr(), "REDIS_PASSWORD="}, c.env...)
		got := program.StartWith(t, env, append(c.flags, "status", "x")...).Outcome(2 * program.Soon)
		if c.says == "" {
			require.Equal(t, program.Outcome{Code: 0, Stdout: "lock \"x\" is free\n", Stderr: ""}, got, c.what)
			continue
		}
		code := 1
		if !strings.Contains(got.Stderr, "rejected the request") {
			code = 2
		}
		require.Equal(t, code, got.Code, c.what)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, c.says, c.what)
		require.NotContains(t, got.Stderr, "sesame", c.what)
	}
}

func TestPasswordArgumentWarnsWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithPassword("sesame"))
	got := program.Finish(t, "redis://elsewhere.invalid", "--redis", s.URL(), "status", "x")
	require.Equal(t, 0, got.Code, got.Stderr)
	program.OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, "all users of this machine can read the password in --redis; put it in REDIS_PASSWORD")
	require.NotContains(t, got.Stderr, "sesame")
	require.Empty(t, program.Finish(t, s.URL(), "status", "x").Stderr, "other users cannot read REDIS_URL")
}

func TestBinaryNamesAcceptedInBase64(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{
		"no UTF-8": "\xff\xfe:42", "zero": "a\x00b", "a pattern": "\xac\xed*[", "usual": "orders:42",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			in := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
			s.Do(t, "HSET", name, program.SomeOwner, 1)
			const dead = "\xfdead"
			program.Enqueue(t, s, name, dead, time.Hour)

			listed := program.Finish(t, s.URL(), "list", "--json").Stdout
			var lock struct {
				Name   string `json:"name"`
				Base64 string `json:"name_base64"`
			}
			require.NoError(t, json.Unmarshal([]byte(listed), &lock))
			if what == "usual" {
				require.Empty(t, lock.Base64)
			} else {
				require.Equal(t, in(name), lock.Base64)
				require.Contains(t, program.Finish(t, s.URL(), "list").Stdout, "\n  base64 "+in(name)+"\n")
			}

			out := program.OK(t, s.URL(), "status", "--base64", in(name))
			require.Contains(t, out, " is held\n")
			require.Contains(t, out, `"\xfdead" (base64 `+in(dead)+")")
			require.Contains(t, program.Finish(t, s.URL(), "status", "--json", "--base64", in(name)).Stdout, `"owner_base64": "`+in(dead)+`"`)

			watch := program.Start(t, s.URL(), "watch", "--base64", "--json", in(name))
			program.Events(watch, "held")
			got := program.Finish(t, s.URL(), "unlock", "--force", "--for", "100ms", "--base64", in(name))
			require.Equal(t, 2, got.Code)
			program.OK(t, s.URL(), "unlock", "--force", "--for", "100ms", "--dead", program.SomeOwner, "--base64", in(name))
			require.EqualValues(t, 0, s.Do(t, "EXISTS", name))
			program.Events(watch, "gone")

			require.Contains(t, program.Finish(t, s.URL(), "list", "--json").Stdout, `"owner_base64":"`+in(dead)+`"`)
			require.Contains(t, program.Finish(t, s.URL(), "list").Stdout, `"\xfdead" (base64 `+in(dead)+")")
			require.Contains(t, program.OK(t, s.URL(), "evict", "--json", "--base64", in(name), in(dead)), `"owner_base64": "`+in(dead)+`"`)
			require.EqualValues(t, 0, s.Do(t, "EXISTS", codec.QueueKey(name)))

			s.Do(t, "HSET", name, program.SomeOwner, 1)
			program.Events(watch, "taken")
			s.Do(t, "DEL", name)
			s.Do(t, "PUBLISH", codec.LockChannel(name), 0)
			events := program.Events(watch, "released") // without the message, the event would be gone
			require.Equal(t, lock.Name, events[len(events)-1]["name"])
			require.NoError(t, watch.Cmd.Process.Kill())
		})
	}
}

// The address of a command that run starts must not send the password unencrypted, or log in another user.
func TestHeldCommandsKeepUserAndEncryption(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	secure, cert, key := encrypted(t)
	config, _ := configured(t, `contexts: {dev: {redis: "`+s.URL()+`"}, tls: {redis: "redis://`+secure+`"}}`)
	files := " --tls-insecure-skip-verify --tls-cert=" + cert + " --tls-key=" + key
	reader := strings.Replace(s.URL(), "redis://", "redis://default:@", 1) + ","
	for _, c := range []struct{ url, flags, want string }{
		{"", "--user=default --redis=" + s.URL(), reader},
		{"", "--user=default --context=dev", ",dev"},
		{"redis://app.invalid", "--user=default --context=dev", "redis://app.invalid,dev"},
		{"", "--redis=redis://" + secure + files, "rediss://" + secure + ","},
		{"", "--context=tls" + files, "rediss://" + secure + ","},
		{"redis://app.invalid", "--context=tls" + files, "redis://app.invalid,"},
	} {
		env := append(config[:len(config):len(config)], "REDIS_URL="+c.url, "REDIS_PASSWORD=any")
		if !strings.Contains(c.flags, "user") {
			env = append(env, "REDIS_PASSWORD=")
		}
		args := append(strings.Fields(c.flags), "run", "job", "--", "sh", "-c", `echo "$REDIS_URL,$REDLATCH_CONTEXT"`)
		got := program.StartWith(t, env, args...).Outcome(2 * program.Soon)
		require.Equal(t, program.Outcome{Stdout: c.want + "\n"}, got, c)
	}
}

// REDIS_PASSWORD is not a context's password, so commands that run starts must not send it to the context's server.
func TestHeldCommandsDoNotSendPasswordToContext(t *testing.T) {
	t.Parallel()
	secure, cert, key := encrypted(t)
	config, path := configured(t, `contexts:
  open: {redis: "redis://`+secure+`"}
  plain: {redis: "redis://`+secure+`", user: default, password-file: secret}
  rediss: {redis: "rediss://`+secure+`", user: default, password-file: secret}
  keys: {redis: "redis://`+secure+`", user: default, password-file: secret, tls-server-name: redis.example}
`)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "secret"), []byte("any"), 0o600))
	for _, c := range []struct{ url, flags, want string }{
		{"", "--context=open", "rediss://" + secure + ",,"},
		{"", "--context=open --user=default", "rediss://default:@" + secure + ",,other"},
		{"", "--context=plain", "rediss://default:@" + secure + ",,"},
		{"", "--context=plain --user=default", "rediss://default:@" + secure + ",,"},
		{"redis://app.invalid", "--context=plain", "redis://app.invalid,,other"},
		{"", "--context=rediss", ",rediss,other"},
		{"", "--context=keys", ",keys,other"},
	} {
		env := append(config[:len(config):len(config)], "REDIS_URL="+c.url, "REDIS_PASSWORD=other")
		args := append(strings.Fields(c.flags), "--tls-insecure-skip-verify", "--tls-cert="+cert, "--tls-key="+key,
			"run", "job", "--", "sh", "-c", `echo "$REDIS_URL,$REDLATCH_CONTEXT,$REDIS_PASSWORD"`)
		got := program.StartWith(t, env, args...).Outcome(2 * program.Soon)
		require.Equal(t, program.Outcome{Stdout: c.want + "\n"}, got, c)
	}
}
