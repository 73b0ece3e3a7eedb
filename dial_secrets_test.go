package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// secret is a password that must not be shown.
const secret = "hunter2-hunter2"

// confidant records all output.
type confidant struct {
	*redistest.Journal
	options  []redlatch.Option
	reported []string
}

func newConfidant() *confidant {
	log, logger := redistest.NewJournal()
	c := &confidant{Journal: log}
	c.options = []redlatch.Option{redlatch.WithLogger(logger), redlatch.WithObserver(observed.Outcomes(c.observe)), redlatch.WithDialTimeout(time.Second)}
	return c
}

// observe receives all events. Its panics are logged.
func (c *confidant) observe(event any) {
	_, _ = c.Write([]byte(dump(event)))
	panic("an observer's own mistake")
}

// tell adds a value and all errors that it wraps.
func (c *confidant) tell(values ...any) {
	for _, v := range values {
		c.reported = append(c.reported, dump(v))
		switch err := v.(type) {
		case interface{ Unwrap() error }:
			c.tell(err.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range err.Unwrap() {
				c.tell(inner)
			}
		}
	}
}

func dump(v any) string { return fmt.Sprintf("%v\n%+v\n%#v\n%q\n", v, v, v, v) }

// requireKept checks that the output does not contain the secret.
func (c *confidant) requireKept(t *testing.T, among ...string) {
	t.Helper()
	reported := append(c.reported, c.Lines()...)
	for _, text := range among {
		heard := slices.ContainsFunc(reported, func(line string) bool { return strings.Contains(line, text) })
		require.True(t, heard, "the test collected too little output: %s", text)
	}
	for _, line := range reported {
		if before, after, found := strings.Cut(line, secret); found {
			require.FailNow(t, "the secret is shown", "%s[…]%.40s", before[max(0, len(before)-200):], after)
		}
	}
}

// failsToOpen records the error.
func (c *confidant) failsToOpen(t *testing.T, address string, opts ...redlatch.Option) {
	t.Helper()
	_, err := redlatch.Open(t.Context(), address, append(opts, c.options...)...)
	require.Error(t, err)
	c.tell(err)
}

func givesSecret(context.Context) (user, password string, err error) { return "app", secret, nil }

func TestDialErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	c := newConfidant()
	a := newAuthority(t)
	srv, address := tlsServer(t, a, nil)
	srv.Do(t, "CONFIG", "SET", "requirepass", "another")
	for _, scheme := range []string{"redis://", "rediss://", "unix://", "http://", ""} {
		for _, user := range []string{":" + secret + "@", "app:" + secret + "@", secret + "@", "app:" + secret + "%zz@", secret + ":" + secret + ":", "app:12/" + secret + "@", "app:12?" + secret + "@", "app:12#" + secret + "@"} {
			for _, host := range []string{address, "127.0.0.1:1", "host:port", "[::1", "", "/nowhere?db=x", "/nowhere", "127.0.0.1:1/db"} {
				c.failsToOpen(t, scheme+user+host)
			}
		}
	}
	vault := redlatch.WithCredentials(givesSecret)
	c.failsToOpen(t, "redis://127.0.0.1:1", vault)
	c.failsToOpen(t, "rediss://"+address, vault, redlatch.WithTLSConfig(a.trusting()))
	c.failsToOpen(t, "rediss://"+address, vault)
	c.failsToOpen(t, "redis://:"+secret+"@"+address, redlatch.WithTLSConfig(a.trusting()))
	c.requireKept(t, "WRONGPASS", "x509", "refused", "the host is missing", "the scheme is missing", "redlatch: cannot connect")
}

func TestOutputHidesSecrets(t *testing.T) {
	t.Parallel()
	t.Run("name", func(t *testing.T) { testOutputHidesSecrets(t, redlatch.WithClientName("worker")) })
	t.Run("vault", func(t *testing.T) { testOutputHidesSecrets(t, redlatch.WithCredentials(givesSecret)) })
}

func testOutputHidesSecrets(t *testing.T, opt redlatch.Option) {
	t.Helper()
	t.Parallel()
	srv := redistest.Start(t)
	srv.Do(t, "ACL", "SETUSER", "app", "on", ">"+secret, "~app:*", "&*", "+@all", "-role")
	c := newConfidant()
	client := dialled(t, strings.Replace(srv.URL(), "://", "://app:"+secret+"@", 1), append(c.options, opt)...)
	c.tell(client, *client, c.options, opt, client.ID())
	l := rlock.New(client, "app:"+redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	c.tell(l, hold.Owner())
	_, err = l.TryLock(t.Context(), rlock.WithOwner(codec.NewOwner(uuid.New(), 7)))
	c.tell(err)
	_, err = rlock.New(client, "theirs").Lock(t.Context()) // NOPERM
	c.tell(err)
	clients, _ := srv.Do(t, "CLIENT", "LIST").([]byte)
	c.tell(string(clients), fmt.Sprintf("%s", srv.Do(t, "ACL", "LOG")))

	// From here on the password is outdated.
	srv.Do(t, "ACL", "SETUSER", "app", "resetpass", ">another")
	srv.KillClients(t, "normal")
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = l.TryLock(ctx)
		c.tell(err)
		return err != nil && strings.Contains(err.Error(), "WRONGPASS")
	}, soon, time.Millisecond)
	c.tell(hold.Unlock(), context.Cause(hold.Context(t.Context())))
	srv.Do(t, "ACL", "SETUSER", "app", "resetpass", ">"+secret)
	c.requireKept(t, "NOPERM", "WRONGPASS", " name=", "redlatch: connection lost", "an observer's own mistake")
}

// The vault's error is passed on unchanged.
func TestVaultErrorHidesPreviousPassword(t *testing.T) {
	t.Parallel()
	reason := errors.New("the vault is sealed")
	_, err := redlatch.Open(t.Context(), redistest.Shared(t).URL(), redlatch.WithCredentials(func(context.Context) (string, string, error) {
		return "app", secret, reason
	}))
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.NotContains(t, dump(err), secret)
}
