package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// A terminal breaks what is too long wherever that is, between two letters of an owner
// as well. Names, owners, leases and labels here are as long as they may well be.
func TestAllOutputFitsATerminal(t *testing.T) {
	testlevel.All(t, "a program for each of 25 command lines")
	t.Parallel()
	s := redistest.Start(t)
	wideFixture(t, s)
	s.Do(t, "ACL", "SETUSER", "guest", "reset", "on", ">password", "+@all", "-pubsub", "-config", "~*", "&*")
	blind := "redis://guest:password@" + s.Addr()
	long := wideName + ":held"
	for _, c := range []struct {
		url, typed string
		args       []string
	}{
		{s.URL(), "", []string{"list"}},
		{s.URL(), "", []string{"list", "no-such-lock-*"}},
		{s.URL(), "", []string{"status", wideName + ":held"}},
		{s.URL(), "", []string{"status", wideName + ":free"}},
		{s.URL(), "", []string{"status", wideName + ":odd"}},
		{blind, "", []string{"status", wideName + ":held"}},
		{blind, "", []string{"status", wideName + ":free"}},
		{s.URL(), "", []string{"watch", "--for", "1s", wideName + "*"}},
		{s.URL(), "", []string{"unlock", long}},
		{s.URL(), "", []string{"unlock", "--force", "--for", "1s", long}},
		{s.URL(), "", []string{"unlock", "--force", "--even-if-alive", wideName + ":odd"}},
		{s.URL(), "n\n", []string{"unlock", "--force", "--even-if-alive", long}},
		{s.URL(), "y\n", []string{"unlock", "--force", "--even-if-alive", "--reason", "its host was shut down", long}},
		{blind, "", []string{"evict", wideName + ":free", wideOwner}},
		{s.URL(), "", []string{"evict", wideName + ":free", program.RedlatchOwner}},
		{s.URL(), "", []string{"evict", wideName + ":free", wideOwner}},
		{s.URL(), "", []string{"evict", "--even-if-alive", wideName + ":free", strangeOwner}},
		{s.URL(), "", []string{"run", "--try", wideName + ":odd", "--", "true"}},
		{s.URL(), "", []string{"doctor"}},
		{blind, "", []string{"doctor"}},
		{program.NoServer(t), "", []string{"status", "a"}},
		{"", "", []string{"list", "--redis", program.NoServer(t)}},
		{s.URL(), "", []string{"--version"}},
		{s.URL(), "", []string{"lock-everything"}},
	} {
		shown := program.OnTerminal(t, c.url, c.typed, c.args...)
		t.Logf("redlatch %s\n%s", strings.Join(c.args, " "), shown)
		require.NotEmpty(t, shown)
		for line := range strings.Lines(shown) {
			if !strings.HasPrefix(line, "    ACL SETUSER ") && !strings.HasPrefix(strings.TrimSpace(line), "`redlatch ") { // commands to be copied
				require.Less(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), cli.Columns, "%v: %s", c.args, line)
			}
		}
	}
}

// Names and owners that are long.
const (
	wideName     = "billing-service:eu-west-1:nightly-run"
	wideOwner    = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:9223372036854775807"
	strangeOwner = "a-program-of-its-own@host-17.example pid 4194304 thread 12"
)

// wideFixture makes locks with owners, leases, deadlines and labels that are long.
func wideFixture(t *testing.T, s *redistest.Server) {
	t.Helper()
	holder := redlatch.NewOwner(program.ClientID, 9223372036854775807)
	s.Do(t, "SET", engine.LabelKey(program.ClientID), "billing-service@ip-10-110-120-130.eu-west-1.compute.internal pid 4194304")
	held := wideName + ":held"
	s.Do(t, "HSET", held, holder.String(), 99999)
	s.Do(t, "PEXPIRE", held, (999*time.Hour + 59*time.Minute + 59900*time.Millisecond).Milliseconds())
	c := s.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.LockChannel(held)))
	require.NoError(t, c.Flush())
	_, err := redis.ReceiveWithTimeout(c, program.Soon)
	require.NoError(t, err)
	for _, name := range []string{held, wideName + ":free"} {
		for _, owner := range []string{wideOwner, strangeOwner, holder.String(), redlatch.NewOwner(uuid.New(), 1).String()} {
			program.Enqueue(t, s, name, owner, 999*time.Hour+59*time.Minute+59900*time.Millisecond)
		}
	}
	s.Do(t, "HSET", wideName+":odd", strangeOwner, "as often as it likes", "mode", "none", wideOwner, 1)
}
