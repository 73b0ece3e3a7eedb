package program

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const columns = 80

var update = flag.Bool("update", false, "write the golden files anew")

// Golden replaces the values in text that vary between runs and compares the result with the golden file. With -update,
// it writes the file.
func Golden(t *testing.T, name, text string, ids ...string) {
	t.Helper()
	got := tidy(text, ids)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), got, "go test -update writes it; review the change")
}

// JavaID and OtherJavaID replace random UUIDs in golden files.
const (
	JavaID      = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	OtherJavaID = "c4d1f0a6-5b0e-4c7e-9a52-6e215a90c7e2"
)

// untidy lists values that vary between runs. The replacements do not change column widths.
var untidy = []struct {
	what *regexp.Regexp
	with func(found string) string
}{
	{regexp.MustCompile(`(0b8f3a11|5a90c7e2):\d+(    +)?`), func(s string) string {
		thread := s[:len("0b8f3a11:")] + "57"
		if !strings.HasSuffix(s, " ") {
			return thread
		}
		return fmt.Sprintf("%-*s", len(s), thread)
	}},
	{regexp.MustCompile(`"(at|client_started)": ?"[^"]*"`), func(s string) string { return s[:strings.Index(s, ":")] + `:"TIME"` }},
	{regexp.MustCompile(`"(ttl_ms|deadline_in_ms|left_ms)": ?[1-9]\d*`), func(s string) string { return s[:strings.Index(s, ":")] + ":MS" }},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d(\.\d\d\d)?Z`), func(string) string { return "TIME" }},
	{regexp.MustCompile(`since \S+Z`), func(string) string { return "since TIME" }},
	{regexp.MustCompile(`(?m)  +\d[\dhms.]*[hms] +[-\d]+$`), rightAligned},
	{regexp.MustCompile(`   +\d[\dhms.]*[hms]\b`), func(s string) string { return fmt.Sprintf("%*s", len(s), "TIME") }},
	{regexp.MustCompile(` \d[\dhms.]*[hms]\b`), func(string) string { return " TIME" }},
}

var note = regexp.MustCompile(`(?m)^  note   .*\n(         .*\n)*`)

func tidy(text string, ids []string) string {
	for i, id := range ids {
		as := []string{JavaID, OtherJavaID}[i]
		text = strings.ReplaceAll(text, id, as)
		text = strings.ReplaceAll(text, id[len(id)-8:], as[len(as)-8:])
	}
	for _, u := range untidy {
		text = u.what.ReplaceAllStringFunc(text, u.with)
	}
	return note.ReplaceAllStringFunc(text, func(s string) string {
		return "  note   " + Words(strings.TrimPrefix(s, "  note")) + "\n"
	})
}

// Fits requires that the output is not empty and fits a terminal.
func Fits(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	Narrow(t, text)
}

func rightAligned(s string) string {
	words := strings.Fields(s)
	end := strings.Index(s, words[0]) + len(words[0])
	return fmt.Sprintf("%*s", end, "TIME") + s[end:]
}

// Words joins lines and removes repeated spaces.
func Words(text string) string { return strings.Join(strings.Fields(text), " ") }

// Narrow requires that lines leave the last column of the terminal empty, because some terminals wrap full lines. Lines
// that contain a command to copy may be longer.
func Narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "`redlatch ") {
			continue
		}
		require.Less(t, sanitize.Width(strings.TrimSuffix(line, "\n")), columns, line)
	}
}

// Interrupt is the signal of Ctrl-C.
var Interrupt = os.Interrupt

// CodeInterrupted is the exit code of a program that was ended by Interrupt.
const CodeInterrupted = 130

// ToEvent returns the lines up to the first line that contains event.
func ToEvent(p *Process, event string) (lines []string) {
	p.t.Helper()
	for {
		line := p.Line()
		lines = append(lines, line)
		if strings.Contains(line, event) {
			return lines
		}
	}
}

// AwaitPassed returns the line that reports that another owner acquired the lock.
func AwaitPassed(p *Process) string {
	p.t.Helper()
	for {
		if line := p.Line(); strings.Contains(line, "passed") || strings.Contains(line, "taken") {
			return line
		}
	}
}

// Events reads JSON output up to the first event with the name last.
func Events(p *Process, last string) (all []map[string]any) {
	p.t.Helper()
	for _, line := range ToEvent(p, `"event":"`+last+`"`) {
		var e map[string]any
		require.NoError(p.t, json.Unmarshal([]byte(line), &e))
		all = append(all, e)
	}
	return all
}

const (
	// RedissonOwner is an owner in a Redisson client.
	RedissonOwner = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"
	// SomeOwner is an owner in a Redlatch client that was started at RedlatchSince.
	SomeOwner = "0193e6c0-6f00-7000-8000-000000000001:7"
	// RedlatchOwner is SomeOwner in tests that also have other kinds of owners.
	RedlatchOwner = SomeOwner
	// RedlatchSince has the format of text output.
	RedlatchSince = "2024-12-21T01:06:31Z"
	// LabelText is the label of a Redlatch client.
	LabelText = "billing@host-3 pid 812"
)

// ClientID is the ID of another Redlatch client.
var ClientID = uuid.MustParse("0193e6c0-6f00-7000-8000-000000000002")

// These scripts run until they receive a signal.
const (
	// EndsOnSIGTERM prints a line and exits after SIGTERM. A child that has just been forked may miss the signal, so
	// children do not run for long or keep the output open.
	EndsOnSIGTERM = `trap 'echo term; exit 0' TERM; echo up; while :; do sleep 1 >/dev/null 2>&1 & wait; done`
	// IgnoresSIGTERM exits only after SIGKILL.
	IgnoresSIGTERM = `trap '' TERM; echo up; sleep 600 & wait`
)

// Enqueue adds an owner to the queue of a fair lock.
func Enqueue(t *testing.T, s redistest.Target, name, owner string, deadline time.Duration) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	if deadline != 0 {
		s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(deadline).UnixMilli(), owner)
	}
}

// Listen subscribes to the channel on which the owner is notified as a waiter.
func Listen(t *testing.T, s redistest.Target, name, owner string) {
	t.Helper()
	Subscribe(t, s, protocol.OwnerChannel(name, owner))
}

// QueueOf returns the queue of a fair lock.
func QueueOf(t *testing.T, s redistest.Target, name string) []string {
	t.Helper()
	queue, err := redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(t, err)
	return queue
}

// HeldBy creates a lock that is held by owner, and returns its name.
func HeldBy(t *testing.T, s redistest.Target, owner string, lease time.Duration) (name string) {
	t.Helper()
	name = redistest.Key(t)
	s.Do(t, "HSET", name, owner, 1)
	s.Do(t, "PEXPIRE", name, lease.Milliseconds())
	return name
}

// Exists reports whether the lock is held.
func Exists(t *testing.T, s redistest.Target, name string) bool {
	t.Helper()
	return s.Do(t, "EXISTS", name) == int64(1)
}

// LongOwner returns the n-th waiter in a LongQueue, counting from 0.
func LongOwner(n int) string { return codec.NewOwner(uuid.MustParse(JavaID), int64(1000+n)).String() }

// LongQueue creates a held lock with n waiters whose deadlines are one minute apart.
func LongQueue(t *testing.T, s *redistest.Server, name, holder string, n int) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("HSET", name, holder, 1))
	now, owners, deadlines := time.Now().UnixMilli(), []any{codec.QueueKey(name)}, []any{codec.TimeoutKey(name)}
	for i := range n {
		owner := LongOwner(i)
		owners, deadlines = append(owners, owner), append(deadlines, now+int64(i+1)*60_000, owner)
	}
	require.NoError(t, c.Send("RPUSH", owners...))
	require.NoError(t, c.Send("ZADD", deadlines...))
	_, err := c.Do("")
	require.NoError(t, err)
}

// BusyDemo starts a demo, waits until it has finished rounds, and returns the prefix of its keys.
func BusyDemo(t *testing.T, s *redistest.Server) (p *Process, prefix string) {
	t.Helper()
	p = Start(t, NoServer(t), "demo", "--duration", "1h", "--redis", s.URL())
	require.Eventually(t, func() bool {
		names, err := redis.Strings(s.Do(t, "KEYS", "redlatch-demo:*:journal"), nil)
		require.NoError(t, err)
		if len(names) != 1 || s.Clients(t) < 3*8 {
			return false
		}
		prefix = strings.TrimSuffix(names[0], ":journal")
		left, err := redis.Int(s.Do(t, "TTL", codec.TimeoutKey(prefix+":lock")), nil)
		require.NoError(t, err)
		return left > 0
	}, Soon, PollEvery)
	return p, prefix
}
