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
}

// String returns the call.
func (v vector) String() string {
	if v.script == nil {
		return fmt.Sprint(v.args...)
	}
	return fmt.Sprint(v.script.Name(), v.keys, v.args)
}

// held is a lock in Redis.
type held struct {
	counts map[string]string
	pttl   int64 // milliseconds, about; -1: none
}

// queue is a list without a time to live.
type queue []string

// timeouts is a sorted set without a time to live.
type timeouts map[string]float64

// about is a reply in milliseconds of which a little may have passed.
type about int64

// failure is an error reply that carries a code.
type failure string

// passing is how much of a time to live may pass on a busy machine before it is
// looked at. Leases in vectors differ by more.
const passing = 8000

func (a about) covers(got int64) bool {
	if a < 0 {
		return got == int64(a)
	}
	return got <= int64(a) && got > int64(a)-passing
}

// scenario is a story about locks whose names begin with l.
type scenario struct {
	name    string
	vectors func(l string) []vector
}

// stage plays scenarios, one after another, on a server of its own. It sends together what it
// need not wait for.
type stage struct {
	t        *testing.T
	conn     redis.Conn
	listener redis.PubSubConn // hears every channel
	monitor  redis.Conn       // nil where the server has no MONITOR
	marks    int
	known    map[string]string // the digests of the texts that the server knows
	calls    string            // commands that the script of the last run has run
	// instead has the texts to run in place of scripts.
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

// newQuietStage returns a stage that does not watch what scripts do.
func newQuietStage(t *testing.T, target redistest.Target) *stage {
	t.Helper()
	s := &stage{t: t, conn: target.Dial(t), listener: redis.PubSubConn{Conn: target.Dial(t)}, known: map[string]string{}}
	require.NoError(t, s.listener.PSubscribe("*"))
	require.IsType(t, redis.Subscription{}, s.listener.ReceiveWithTimeout(10*time.Second))
	return s
}

// play runs a scenario on keys of its own and returns the first difference
// between what was wanted and what happened.
func (s *stage) play(sc scenario) error {
	s.t.Helper()
	l := redistest.Key(s.t)
	for i, v := range sc.vectors(l) {
		if err := s.check(l, v); err != nil {
			return fmt.Errorf("%s, step %d, %v: %w", sc.name, i+1, v, err)
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

// run makes a call.
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

// evaluation is the command that runs the script of a vector, which the server knows then.
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
		s.known[script.Text()] = digest
	}
	command := []any{"EVALSHA", digest, len(v.keys)}
	for _, k := range v.keys {
		command = append(command, k)
	}
	return append(command, v.args...)
}

// replyOf returns want if the reply is as wanted, and else the reply.
func replyOf(reply any, err error, want any) any {
	switch want := want.(type) {
	case failure:
		var e redis.Error
		if errors.As(err, &e) && (&transport.ServerError{Text: e.Error()}).HasCode(string(want)) {
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

// callsUntil returns the commands that scripts have run since the last time.
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

// messagesSince returns what has arrived since the last time.
func (s *stage) messagesSince() []string {
	mark := s.mark()
	s.pipeline([][]any{{"PUBLISH", theEnd, mark}})
	return s.messagesUntil(mark)
}

// theEnd is the channel of the messages behind which nothing is looked for.
const theEnd = "the end"

// messagesUntil returns what has arrived since the last time, before a message on theEnd.
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

// isEmpty makes no list and an empty one the same. Replies are never both.
func isEmpty(v any) bool {
	list, ok := v.([]string)
	return ok && len(list) == 0
}
