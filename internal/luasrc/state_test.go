package luasrc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// leftDiffers compares messages since the last time, and every key whose name contains l.
func (s *stage) leftDiffers(l string, messages []string, want map[string]any) error {
	mark, names := s.mark(), slices.Sorted(maps.Keys(want))
	commands := [][]any{{"PUBLISH", theEnd, mark}, {"KEYS", "*" + l + "*"}}
	for _, name := range names {
		commands = append(commands, readsOf(name, want[name])...)
	}
	replies := s.pipeline(commands)
	return errors.Join(
		differs("messages", messages, s.messagesUntil(mark)),
		s.keysDiffer(names, replies[1], replies[2:], want),
	)
}

func (s *stage) keysDiffer(names []string, list any, states []any, want map[string]any) error {
	there, err := redis.Strings(list, nil)
	require.NoError(s.t, err)
	slices.Sort(there)
	if err := differs("keys", names, there); err != nil {
		return err
	}
	for i, of := range slices.Collect(slices.Chunk(states, 3)) {
		name := names[i]
		got := s.stateOf(want[name], of)
		h, isLock := got.(held)
		w, wantLock := want[name].(held)
		if isLock && wantLock && about(w.pttl).covers(h.pttl) {
			h.pttl = w.pttl
			got = h
		}
		if err := differs("state of "+name, want[name], got); err != nil {
			return err
		}
	}
	return nil
}

// kinds has for each type of key the command that reads one, and what makes its
// reply comparable.
var kinds = map[string]struct {
	read   []any
	decode func(reply any) (any, error)
}{
	"hash":   {[]any{"HGETALL"}, func(reply any) (any, error) { return redis.StringMap(reply, nil) }},
	"string": {[]any{"GETRANGE", 0, -1}, func(reply any) (any, error) { return redis.String(reply, nil) }},
	"list": {[]any{"LRANGE", 0, -1}, func(reply any) (any, error) {
		list, err := redis.Strings(reply, nil)
		return queue(list), err
	}},
	"zset": {[]any{"ZRANGE", 0, -1, "WITHSCORES"}, func(reply any) (any, error) {
		scores, err := redis.Float64Map(reply, nil)
		return timeouts(scores), err
	}},
}

// kindOf is the type of the key that has a state.
func kindOf(state any) string {
	switch state := state.(type) {
	case lasting:
		return kindOf(state.value)
	case queue:
		return "list"
	case timeouts:
		return "zset"
	case held:
		if _, isLatch := state.counts[""]; !isLatch {
			return "hash"
		}
	}
	return "string"
}

// readsOf are the commands that read a key which is to have a state.
func readsOf(name string, want any) [][]any {
	read := kinds[kindOf(want)].read
	return [][]any{{"PTTL", name}, {"TYPE", name}, append([]any{read[0], name}, read[1:]...)}
}

// stateOf is the state that readsOf has read, or the type of a key that is of another than wanted.
func (s *stage) stateOf(want any, read []any) any {
	kind := kindOf(want)
	if is := fmt.Sprint(read[1]); is != kind {
		return "of type " + is
	}
	pttl, err := redis.Int64(read[0], nil)
	require.NoError(s.t, err)
	value, err := kinds[kind].decode(read[2])
	require.NoError(s.t, err)
	return expiring(value, pttl)
}

// readLocks reads the hashes of these names.
func (s *stage) readLocks(names ...string) map[string]held {
	var commands [][]any
	for _, name := range names {
		commands = append(commands, readsOf(name, held{})...)
	}
	replies, locks := s.pipeline(commands), map[string]held{}
	for i, name := range names {
		state := s.stateOf(held{}, replies[3*i:])
		require.IsType(s.t, held{}, state, name)
		locks[name] = state.(held)
	}
	return locks
}

// pipeline sends commands together and returns their replies.
func (s *stage) pipeline(commands [][]any) []any {
	for _, c := range commands {
		require.NoError(s.t, s.conn.Send(fmt.Sprint(c[0]), c[1:]...))
	}
	replies, err := redis.Values(s.conn.Do(""))
	require.NoError(s.t, err)
	return replies
}

// lasting is what expires at a time that is not looked at.
type lasting struct{ value any }

// expiring is a value and what it has left. Of locks and latches that is looked at.
func expiring(value any, pttl int64) any {
	switch v := value.(type) {
	case map[string]string:
		return held{v, pttl}
	case string:
		if pttl >= 0 {
			return held{map[string]string{"": v}, pttl}
		}
	default:
		if pttl >= 0 {
			return lasting{v}
		}
	}
	return value
}
