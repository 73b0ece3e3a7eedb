package luasrc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/fairmodel"
)

// stateDiffers compares every key whose name contains l.
func (s *stage) stateDiffers(l string, want map[string]any) error {
	names, err := redis.Strings(s.conn.Do("KEYS", "*"+l+"*"))
	require.NoError(s.t, err)
	slices.Sort(names)
	if err := differs("keys", slices.Sorted(maps.Keys(want)), names); err != nil {
		return err
	}
	for name, got := range s.readKeys(names) {
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
	// A key that expired between its listing and its reading differs from whatever was wanted.
	"none": {[]any{"EXISTS"}, func(any) (any, error) { return "expired", nil }},
}

// types are the types of kinds, in the order in which keys are read as such.
var types = slices.Sorted(maps.Keys(kinds))

// readKeys reads keys, each as one of every type, in one round trip. What it is not is refused.
func (s *stage) readKeys(names []string) map[string]any {
	var ask [][]any
	for _, name := range names {
		ask = append(ask, []any{"PTTL", name}, []any{"TYPE", name})
		for _, kind := range types {
			read := kinds[kind].read
			ask = append(ask, append([]any{read[0], name}, read[1:]...))
		}
	}
	replies, states := s.pipeline(ask), map[string]any{}
	for i, of := range slices.Collect(slices.Chunk(replies, 2+len(types))) {
		pttl, err := redis.Int64(of[0], nil)
		require.NoError(s.t, err)
		at := slices.Index(types, fmt.Sprint(of[1]))
		require.GreaterOrEqual(s.t, at, 0, "%s is a %v", names[i], of[1])
		value, err := kinds[types[at]].decode(of[2+at])
		require.NoError(s.t, err)
		states[names[i]] = expiring(value, pttl)
	}
	return states
}

// pipeline sends commands together and returns their replies.
func (s *stage) pipeline(commands [][]any) []any {
	if len(commands) == 0 {
		return nil
	}
	for _, c := range commands {
		require.NoError(s.t, s.conn.Send(fmt.Sprint(c[0]), c[1:]...))
	}
	replies, err := redis.Values(s.conn.Do(""))
	require.NoError(s.t, err)
	return replies
}

// expiring is a value and what it has left. Only locks and latches may expire.
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
			return fmt.Sprintf("%v that expires", v)
		}
	}
	return value
}

// fairState is all that must be on the server under the name l when the model is
// right.
func fairState(m *fairmodel.Lock, l string) map[string]any {
	all := map[string]any{}
	if !m.IsFree() {
		counts := map[string]string{}
		for owner, count := range m.Counts {
			counts[owner] = strconv.FormatInt(count, 10)
		}
		all[l] = held{counts, m.PTTL}
	}
	if len(m.Queue) > 0 {
		all[codec.QueueKey(l)] = queue(slices.Clone(m.Queue))
	}
	if len(m.Deadlines) > 0 {
		all[codec.TimeoutKey(l)] = timeouts(maps.Clone(m.Deadlines))
	}
	for id, outcome := range m.Latches {
		all[codec.LatchKey(l, id)] = held{map[string]string{"": outcome}, 16000}
	}
	return all
}
