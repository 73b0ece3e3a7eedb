package luasrc

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// vector is one call and all that it must do.
type vector struct {
	script *transport.Script // nil: args is a plain command
	keys   []string
	args   []any

	reply    any            // nil, int64, string, []any, about or failure
	calls    string         // commands that the script runs, in order
	after    map[string]any // every key of the scenario: held, queue, timeouts or a string
	messages []string       // "channel payload", in order

	next [][]any // commands to run after the checks
}

// then adds a plain command that prepares the next vector.
func (v vector) then(command ...any) vector {
	v.next = append(v.next, command)
	return v
}

func (v vector) String() string {
	if v.script == nil {
		return fmt.Sprint(v.args...)
	}
	return fmt.Sprint(v.script.Name(), v.keys, v.args)
}

type held struct {
	counts map[string]string
	pttl   int64 // milliseconds, approximately; -1 if there is none
}

type queue []string

type timeouts map[string]float64

// about is a reply in milliseconds, of which some may have passed.
type about int64

type failure string

// passing is how much of a TTL may pass on a busy machine. Leases in vectors differ by more.
const passing = 8000

func (a about) covers(got int64) bool {
	if a < 0 {
		return got == int64(a)
	}
	return got <= int64(a) && got > int64(a)-passing
}

// scenario is a sequence of vectors about locks whose names begin with l.
type scenario struct {
	name    string
	vectors func(l string) []vector
}

// stage plays scenarios on one server.
type stage struct {
	t        *testing.T
	conn     redis.Conn
	listener redis.PubSubConn // subscribes to every channel
	monitor  redis.Conn       // nil if the server lacks MONITOR
	marks    int
	known    map[string]string // the digests of the texts that the server knows
	calls    string            // commands that the script of the last run has run
	// instead contains replacements for scripts.
	instead map[*transport.Script]*transport.Script
}

func newStage(t *testing.T, target redistest.Target) *stage {
	t.Helper()
	s := newQuietStage(t, target)
	if _, real := target.(*redistest.Server); real {
		s.monitor = target.Dial(t)
		_, err := s.monitor.Do("MONITOR")
		require.NoError(t, err)
	}
	return s
}

// newQuietStage returns a stage that does not check the scripts' commands.
func newQuietStage(t *testing.T, target redistest.Target) *stage {
	t.Helper()
	s := &stage{t: t, conn: target.Dial(t), listener: redis.PubSubConn{Conn: target.Dial(t)}, known: map[string]string{}}
	require.NoError(t, s.listener.PSubscribe("*"))
	require.IsType(t, redis.Subscription{}, s.listener.ReceiveWithTimeout(10*time.Second))
	return s
}

func (s *stage) play(sc scenario) error {
	s.t.Helper()
	l := redistest.Key(s.t)
	for i, v := range sc.vectors(l) {
		if err := s.check(l, v); err != nil {
			return fmt.Errorf("%s, step %d, %v: %w", sc.name, i+1, v, err)
		}
		for _, command := range v.next {
			_, err := s.run(vector{args: command})
			require.NoError(s.t, err, command)
		}
	}
	return nil
}

func (s *stage) check(l string, v vector) error {
	reply, err := s.run(v)
	return errors.Join(
		differs("reply", v.reply, replyOf(reply, err, v.reply)),
		s.callsDiffer(v),
		s.leftDiffers(l, v.messages, v.after),
	)
}

func (s *stage) run(v vector) (any, error) {
	mark := s.mark()
	commands := [][]any{v.args}
	if v.script != nil {
		commands[0] = s.evaluation(v)
	}
	if s.monitor != nil {
		commands = append(commands, []any{"ECHO", mark})
	}
	reply := s.pipeline(commands)[0]
	s.calls = s.callsUntil(mark)
	if err, failed := reply.(redis.Error); failed {
		return nil, err
	}
	return reply, nil
}

func (s *stage) evaluation(v vector) []any {
	script := v.script
	if other := s.instead[script]; other != nil {
		script = other
	}
	digest := s.known[script.Text()]
	if digest == "" {
		var err error
		digest, err = redis.String(s.conn.Do("SCRIPT", "LOAD", script.Text()))
		require.NoError(s.t, err, "each script compiles: %s", script.Text())
		require.Equal(s.t, script.SHA(), digest, script.Name())
		s.known[script.Text()] = digest
	}
	command := []any{"EVALSHA", digest, len(v.keys)}
	for _, k := range v.keys {
		command = append(command, k)
	}
	return append(command, v.args...)
}

// replyOf returns want if the reply matches it, otherwise the reply.
func replyOf(reply any, err error, want any) any {
	switch want := want.(type) {
	case failure:
		var e redis.Error
		if errors.As(err, &e) && transport.IsCode(&transport.ServerError{Text: e.Error()}, string(want)) {
			return want
		}
	case about:
		if ms, ok := reply.(int64); ok && want.covers(ms) {
			return want
		}
	case []any:
		if got, ok := reply.([]any); ok && len(got) == len(want) {
			all := make([]any, len(want))
			for i := range want {
				all[i] = replyOf(got[i], nil, want[i])
			}
			return all
		}
	}
	if err != nil {
		return err
	}
	if text, ok := reply.([]byte); ok {
		return string(text)
	}
	return reply
}

func (s *stage) mark() string {
	s.marks++
	return fmt.Sprintf("mark-%d", s.marks)
}

var scriptCall = regexp.MustCompile(`^\S+ \[\d+ lua\] "([^"]*)"`)

func (s *stage) callsUntil(mark string) string {
	if s.monitor == nil {
		return ""
	}
	var calls []string
	for {
		line, err := redis.String(redis.ReceiveWithTimeout(s.monitor, 10*time.Second))
		require.NoError(s.t, err)
		if strings.HasSuffix(line, `"`+mark+`"`) {
			return strings.Join(calls, " ")
		}
		if m := scriptCall.FindStringSubmatch(line); m != nil {
			calls = append(calls, m[1])
		}
	}
}

func (s *stage) callsDiffer(v vector) error {
	if s.monitor == nil || v.script == nil {
		return nil
	}
	return differs("calls", v.calls, s.calls)
}

func (s *stage) messagesSince() []string {
	mark := s.mark()
	s.pipeline([][]any{{"PUBLISH", theEnd, mark}})
	return s.messagesUntil(mark)
}

// theEnd is the channel of messages that end a search.
const theEnd = "the end"

func (s *stage) messagesUntil(mark string) []string {
	var got []string
	for {
		switch m := s.listener.ReceiveWithTimeout(10 * time.Second).(type) {
		case redis.Message:
			if string(m.Data) == mark {
				return got
			}
			got = append(got, m.Channel+" "+string(m.Data))
		case error:
			require.NoError(s.t, m)
		}
	}
}

func differs(what string, want, got any) error {
	if reflect.DeepEqual(want, got) || isEmpty(want) && isEmpty(got) {
		return nil
	}
	return fmt.Errorf("%s: want %v, got %v", what, want, got)
}

// isEmpty treats a nil list as empty.
func isEmpty(v any) bool {
	list, ok := v.([]string)
	return ok && len(list) == 0
}
