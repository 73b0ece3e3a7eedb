package luasrc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// leftDiffers compares the messages since the last call, and all keys whose names contain l.
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

func readsOf(name string, want any) [][]any {
	read := kinds[kindOf(want)].read
	return [][]any{{"PTTL", name}, {"TYPE", name}, append([]any{read[0], name}, read[1:]...)}
}

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

func (s *stage) pipeline(commands [][]any) []any {
	for _, c := range commands {
		require.NoError(s.t, s.conn.Send(fmt.Sprint(c[0]), c[1:]...))
	}
	replies, err := redis.Values(s.conn.Do(""))
	require.NoError(s.t, err)
	return replies
}

// lasting is a value with a TTL that is not compared.
type lasting struct{ value any }

// expiring returns a state with its TTL, which counts for locks and latches.
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
